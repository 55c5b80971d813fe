"""`specbench nightly` when something goes wrong beside the load: what is told, and what becomes the reference."""

from pathlib import Path

import pytest
import xmlschema

from specbench.errors import StoreError
from specbench.nights import History
from specbench.nights.folder import NightFolder
from tests.unit.cli.night_bed import Nights

JUNIT = Path(__file__).parents[2] / "data" / "junit-10.xsd"
FORMS = ("night.txt", "night.md", "night.json", "night.junit.xml", "night.github.txt")


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    for name in ("GITHUB_STEP_SUMMARY", "SPECBENCH_WEBHOOK"):
        monkeypatch.delenv(name, raising=False)
    return Nights(tmp_path, monkeypatch)


def test_a_first_night_that_nothing_could_be_compared_with_is_no_reference(
    nights: Nights, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nights.spend(count=2) == 2
    shown = capsys.readouterr().out
    assert "2 of 'baseline' where 3 are the least" in shown
    assert "2 of 'head' where 3 are the least" in shown
    xmlschema.XMLSchema(str(JUNIT)).validate(nights.latest("night.junit.xml"))
    assert 'errors="1"' in nights.latest("night.junit.xml")
    assert "does not become the reference: 2 of" in nights.page()
    assert nights.spend(failing={("head", 1): "request"}) == 2
    assert "1 of 8 requests failed" in capsys.readouterr().out
    assert nights.spend("--variant", "baseline", failing={("head", 1): "request"}) == 0
    assert nights.statuses == ["refused", "refused", "first"]


def test_a_launch_that_failed_is_told_also_where_the_rest_passes(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    nights.spend("--variant", "baseline")
    capsys.readouterr()
    assert nights.spend("--variant", "baseline", failing={("head", 2): "launch"}) == 2
    assert nights.statuses == ["first", "failed"]
    for text in (capsys.readouterr().out, *map(nights.latest, sorted(FORMS))):
        assert "CUDA error" in text
        assert "failed to run" in text.lower() or '"status": "failed"' in text
    xmlschema.XMLSchema(str(JUNIT)).validate(nights.latest("night.junit.xml"))
    assert 'errors="1"' in nights.latest("night.junit.xml").splitlines()[1]


def test_an_answer_that_can_not_be_stored_is_told_and_is_no_good_night(
    nights: Nights, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nights.spend()
    write = NightFolder.write_history

    def full(folder: NightFolder, history: History) -> None:
        if history.nights[-1].status != "running":
            raise StoreError("history.json: can't be written: No space left on device")
        write(folder, history)

    monkeypatch.setattr(NightFolder, "write_history", full)
    capsys.readouterr()
    assert nights.spend() == 2
    shown = capsys.readouterr()
    assert "PASS" in shown.out
    assert "No space left on device; the next night takes this one for killed" in shown.err
    monkeypatch.setattr(NightFolder, "write_history", write)
    assert nights.spend() == 0
    assert nights.statuses == ["first", "failed", "pass"]


def test_one_form_that_can_not_be_written_keeps_no_other_from_it(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    nights.spend()
    for path in (nights.place / "latest").iterdir():
        path.unlink()
    (nights.place / "latest").rmdir()
    (nights.place / "latest").write_text("in the way")
    assert nights.spend() == 0
    assert "latest: can't be written" in capsys.readouterr().err
    assert "2 nights" in nights.page()
