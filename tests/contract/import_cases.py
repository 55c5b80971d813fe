"""Checks a case of kind `import`: another tool's result file in, neutral rows out, through the command line."""

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from specbench.cli.main import main


def check_import(case: dict[str, Any]) -> None:
    """Strict JSON; every value that is expected, to three digits behind the point or as many as are stated."""
    expected = case["expect"]
    assert set(expected) <= {"rows", "speedup", "warnings", "must_not_emit_nan_or_infinity"}, "no check for a key"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / case["input"]
        path.write_text("\n".join(case["lines"]), encoding="utf-8")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert main(["import", str(path), "--json"]) == 0
    found = json.loads(printed.getvalue(), parse_constant=lambda word: pytest.fail(word))
    assert len(found["rows"]) == len(expected["rows"])
    for row, wanted in zip(found["rows"], expected["rows"], strict=True):
        for name, value in wanted.items():
            tolerance = 5e-4 if isinstance(value, float) else 0
            same = pytest.approx(value, abs=tolerance) if isinstance(value, float) else value
            assert (name, row.get(name)) == (name, same)
    if "speedup" in expected:
        assert found["speedup"] == pytest.approx(expected["speedup"], abs=5e-4)
    if "warnings" in expected:
        assert found["warnings"] == expected["warnings"]
