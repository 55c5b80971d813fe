"""Print the JSON Schema (draft 2020-12) of suite files.

A suite that begins with this line is checked while it is written, in editors with the YAML language server:

  # yaml-language-server: $schema=../specbench/suite/suite.schema.json
"""

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None but `--help`."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Always 0."""
    from specbench.suite import schema_text

    del args
    sys.stdout.write(schema_text())
    return 0
