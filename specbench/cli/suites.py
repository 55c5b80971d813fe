"""How every verb reads a suite: with the engines and datasets that exist, and the shell's environment."""

import os

from specbench import datasets, engines
from specbench.suite import Suite, load_suite


def read_suite(path: str, text: str | None = None) -> Suite:
    """Raises SuiteError with every mistake in the file; `text` is what was read from it already."""
    return load_suite(path, os.environ, {"engine": engines.names(), "dataset": datasets.names()}, text)
