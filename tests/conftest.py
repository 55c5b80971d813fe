"""Golden files: `pytest --update-golden` writes what is rendered now; read the difference before committing it."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

GOLDEN: Final = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with `tests/golden/<name>`."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no {path.name}: write it with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
