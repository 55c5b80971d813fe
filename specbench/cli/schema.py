"""Print a JSON Schema (draft 2020-12): of suite files, or of what `compare --format json` prints.

A suite that begins with this line is checked while it is written, in editors with the YAML language server:

  # yaml-language-server: $schema=../specbench/suite/suite.schema.json
"""

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("--of", choices=("suite", "comparison"), default="suite", help="of what (default: suite)")


def run(args: argparse.Namespace) -> int:
    """Always 0."""
    if args.of == "comparison":
        from specbench.render.comparison.json_text import schema_text
    else:
        from specbench.suite import schema_text
    sys.stdout.write(schema_text())
    return 0
