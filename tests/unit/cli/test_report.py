"""`specbench report`: from disk alone."""

import json
from pathlib import Path

import msgspec
import pytest

from specbench import store
from specbench.cli.main import main
from tests.unit.analysis.runs import SPECULATION, suite, variant, whole_run


def write_run(results: Path, name: str = "made-20261129-153647") -> Path:
    """A run's folder as `run` leaves it."""
    asked = suite([variant("plain"), variant("spec", speculation=SPECULATION)])
    made = whole_run({"plain": {("chat", 1): (0.05, 1)}, "spec": {("chat", 1): (0.06, 3)}}, asked)
    folder = results / name
    folder.mkdir(parents=True)
    writer = store.RunWriter(folder)
    writer.write_run(made.run)
    for trial in made.trials:
        with writer.open_trial(trial.record.trial) as opened:
            for request in trial.requests:
                opened.add_request(request)
            opened.write_manifest(trial.record)
    return folder


def test_report_from_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(write_run(tmp_path))]) == 0
    printed = capsys.readouterr().out
    assert "gains 2.46× on chat at 1 stream" in printed
    assert "\x1b" not in printed


def test_it_writes_a_page_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path)
    assert main(["report", str(folder)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    kinds = sorted(path.suffix for path in (folder / "plots").iterdir())
    assert last == f"page: {folder}/report.html, its {len(kinds) // 2} plots as PNG and SVG in {folder}/plots"
    assert kinds == [".png"] * (len(kinds) // 2) + [".svg"] * (len(kinds) // 2)
    page = (folder / "report.html").read_bytes()
    assert b"gains 2.46" in page.lower()
    assert main(["report", str(folder)]) == 0
    assert (folder / "report.html").read_bytes() == page


def test_the_page_can_be_elsewhere_or_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path)
    assert main(["report", str(folder), "--no-html"]) == 0
    assert main(["report", str(folder), "--format", "markdown"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["plain.launch0", "run.json", "spec.launch0"]
    capsys.readouterr()
    assert main(["report", str(folder), "--format", "json", "--html", str(tmp_path / "new" / "page.html")]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["baseline"] == "plain"
    assert printed.err.startswith(f"page: {tmp_path}/new/page.html")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"page.html", "plots"}
    assert main(["report", str(folder), "--html", "x.html", "--no-html"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_a_page_that_cant_be_written_fails_only_where_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path)
    (folder / "plots").write_text("in the way")
    assert main(["report", str(folder)]) == 0
    printed = capsys.readouterr()
    assert "gains 2.46×" in printed.out
    assert printed.err == f"specbench: no page was written: {folder}/plots: can't be made: File exists\n"
    assert main(["report", str(folder), "--html", str(folder / "page.html")]) == 2
    assert f"{folder}/plots: can't be made" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "start"), [("markdown", "# specbench"), ("json", "{\n")])
def test_report_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, start: str) -> None:
    assert main(["report", str(write_run(tmp_path)), "--format", form]) == 0
    assert capsys.readouterr().out.startswith(start)


def test_the_json_form_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", str(write_run(tmp_path)), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["baseline"] == "plain"


def test_a_folder_of_runs_names_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "zoo-20251129-153647")
    newest = write_run(tmp_path, "made-20261129-153647")
    write_run(tmp_path, "made-20261129-080000")
    assert main(["report", str(tmp_path)]) == 2
    assert f"holds 3 runs; the newest is {newest}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing", "."])
def test_a_folder_that_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["report", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert "no result of specbench" in error
    assert len(error.splitlines()) == 1


def test_a_launch_without_requests_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path)
    (folder / "spec.launch0" / "requests.jsonl").unlink()
    assert main(["report", str(folder)]) == 0
    assert "spec: not measured" in capsys.readouterr().out


def test_a_torn_last_line_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path)
    with (folder / "spec.launch0" / "requests.jsonl").open("ab") as file:
        file.write(msgspec.json.encode({"request_index": 7})[:-3])
    assert main(["report", str(folder)]) == 0
    assert "1 cut-off line" in capsys.readouterr().out
