"""`specbench compare`, `calibrate` and the schema, from the command line."""

import json
from pathlib import Path

import pytest

from specbench.cli.main import main
from tests.unit.analysis.comparing.bed import ALIKE, write_result

LATER = "2026-11-29T02:00:00Z"


def slower(by: float) -> tuple[float, ...]:
    return tuple(pace * by * (1 + 0.001 * sign) for pace, sign in zip(ALIKE, (1, -1, 0.5, -0.5, 0), strict=True))


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return write_result(tmp_path / "results" / "a", {"baseline": ALIKE, "head": ALIKE})


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return write_result(tmp_path / "results" / "b", {"baseline": slower(1.0), "head": slower(1.05)}, started_utc=LATER)


def test_exit_codes(a: Path, b: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(a), str(b)]) == 1
    assert "FAIL" in capsys.readouterr().out
    assert main(["compare", str(a), str(b), "--variant", "baseline"]) == 0
    assert main(["compare", str(a), str(b), "--margin", "8"]) == 0
    assert main(["compare", str(a), str(a)]) == 2
    assert "the same launches" in capsys.readouterr().out
    assert main(["compare", str(a), str(b), "--margin", "5"]) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "A"], "needs two folders"),
        (["compare", "A", "B", "--within", "baseline", "head"], "needs two folders"),
        (["compare", "A", "--within", "baseline", "tail"], "has no variant 'tail'"),
        (["compare", "A", "--within", "head", "head"], "one and the same variant"),
        (["compare", "A", "nowhere"], "no result of specbench"),
        (["compare", "A", "B", "--margin", "no"], "no percentage"),
        (["compare", "A", "B", "--level", "chat"], "is no level"),
        (["compare", "A", "B", "--factor", "gpuz"], "there is no such key"),
        (["compare", "A", "B", "--calibration", "nowhere.json"], "can't be read"),
        (["calibrate"], "needs a suite to launch"),
        (["calibrate", "--from", "A", "--variant", "tail"], "has no variant 'tail'"),
        (["calibrate", "x.yaml", "--launches", "0"], "no number of launches"),
    ],
)
def test_wrong_usage_is_a_sentence(
    words: list[str], said: str, a: Path, b: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([{"A": str(a), "B": str(b)}.get(word, word) for word in words]) == 2
    assert said in capsys.readouterr().err


def test_github_writes_the_job_summary(
    a: Path, b: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["compare", str(a), str(b), "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::error title=FAIL")
    assert summary.read_text(encoding="utf-8").startswith("before\n## ❌ FAIL")


def test_a_job_summary_that_can_not_be_written_changes_no_verdict(
    a: Path, b: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    assert main(["compare", str(a), str(b), "--format", "github"]) == 1
    shown = capsys.readouterr()
    assert "::error " in shown.out
    assert "the job's summary" in shown.err
    assert "can't be written: Is a directory" in shown.err


def test_a_calibration_is_printed_before_it_is_stored(a: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert main(["calibrate", "--from", str(a), "--out", str(tmp_path / "taken")]) == 2
    shown = capsys.readouterr()
    assert "can't be made" in shown.err
    assert "pairs" in shown.out


def test_the_form_goes_to_a_file(a: Path, b: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "out.json"
    assert main(["compare", str(a), str(b), "--format", "json", "--file", str(place)]) == 1
    assert capsys.readouterr().out == ""
    assert json.loads(place.read_text(encoding="utf-8"))["verdict"] == "fail"


def test_a_calibration_is_stored_and_found_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    many = write_result(results / "many", {"baseline": (*ALIKE, *(1.0001 * one for one in ALIKE))})
    assert main(["calibrate", "--from", str(many), "--out", str(results)]) == 0
    told = capsys.readouterr().out
    assert "Recommended: `launches: " in told
    assert (results / "calibration" / "made-box.json").is_file()
    a = write_result(results / "nightly" / "made" / "a", {"baseline": ALIKE})
    noisy = tuple(pace * (1 + 0.02 * sign) for pace, sign in zip(ALIKE, (1, -1, 0.5, -0.5, 0), strict=True))
    b = write_result(results / "nightly" / "made" / "b", {"baseline": noisy}, started_utc=LATER)
    assert main(["compare", str(a), str(b), "--format", "json"]) == 3
    answers = json.loads(capsys.readouterr().out)["variants"][0]["answers"]
    assert {one["sd_source"] for one in answers} == {"calibration"}


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--of", "comparison"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "specbench comparison, version 1"
