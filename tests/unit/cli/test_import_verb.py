"""`specbench import`, as a person calls it."""

import json
from pathlib import Path

import pytest

from specbench.cli.main import main

BASE = {"output_throughput": 100.0, "duration": 10.0, "completed": 4, "max_concurrency": 2, "request_rate": float("inf")}


def rows(path: Path, *changes: dict[str, object]) -> str:
    path.write_text("\n".join(json.dumps({**BASE, **one}) for one in changes))
    return str(path)


def test_a_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = rows(tmp_path / "x.jsonl", {"tag": "plain"}, {"tag": "dead", "accept_length": 1.0, "output_throughput": 70.0})
    assert main(["import", name]) == 0
    table = capsys.readouterr().out
    assert "0.70  1.00" in table
    assert "dead drafter" in table


def test_rows_of_another_load_give_no_speedup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = rows(tmp_path / "x.jsonl", {}, {"accept_length": 2.0, "max_concurrency": 8})
    assert main(["import", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(word))
    assert (found["speedup"], found["rows"][1]["verdict"]) == (None, "unknown")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "line 1: no result of"),
        ("[1, 2]", "line 1: no result of"),
        ('{"a": 1}\nnonsense', "line 2: is no JSON"),
        ("", "holds no result"),
        ("[" * 100_000, "line 1: is no JSON"),
    ],
)
def test_what_is_no_result(text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text(text)
    assert main(["import", str(tmp_path / "x.json")]) == 2
    assert expected in capsys.readouterr().err
