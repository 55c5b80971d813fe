"""The folder in which each test runs the command line."""

from pathlib import Path

import pytest

from tests.e2e.bed import Bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    """With the fake engine in it."""
    return Bed(tmp_path)
