"""A suite's nights on the disk: what is read is what was written, and nothing of somebody else's is deleted."""

from pathlib import Path

import pytest

from specbench.errors import StoreError
from specbench.nights import Figures, History, Night, Worse
from specbench.nights.folder import HISTORY_FILE, REFERENCE_FILE, NightFolder, folder_of

NIGHT = Night(
    started_utc="2026-11-28T02:00:00Z",
    ended_utc="2026-11-28T03:00:00Z",
    status="fail",
    run="s-20261128-020000",
    worse=(Worse(variant="head", metric="output_tps", change_ratio=-0.05),),
    figures=(Figures(variant="head", launch_count=5, output_tps=100.0, accept_length=2.5),),
    exit_code=1,
)


@pytest.fixture
def folder(tmp_path: Path) -> NightFolder:
    found = NightFolder(tmp_path / "nightly" / "s", "s")
    found.make()
    return found


def run_in(folder: NightFolder, name: str, size_bytes: int = 10) -> Path:
    place = folder.path / name
    place.mkdir()
    (place / "run.json").write_bytes(b"x" * size_bytes)
    return place


def test_a_history_comes_back_as_it_was(folder: NightFolder) -> None:
    assert folder.history() == History(suite_name="s")
    folder.write_history(History(suite_name="s", nights=(NIGHT,)))
    assert folder.history() == History(suite_name="s", nights=(NIGHT,))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 2}', '{"schema_version": 1, "nights": 3}', "\x00"])
def test_what_is_no_history_is_refused_in_a_sentence(folder: NightFolder, text: str) -> None:
    (folder.path / HISTORY_FILE).write_text(text)
    with pytest.raises(StoreError, match=r"history\.json: "):
        folder.history()


def test_rehearsed_nights_lie_apart(tmp_path: Path) -> None:
    assert folder_of(tmp_path, "s", simulated=True) != folder_of(tmp_path, "s", simulated=False)


def test_a_pin_inside_moves_with_the_folder_and_one_outside_stays(folder: NightFolder, tmp_path: Path) -> None:
    assert folder.pinned() is None
    folder.pin(run_in(folder, "s-20261128-020000"))
    assert (folder.path / REFERENCE_FILE).read_text() == "s-20261128-020000\n"
    moved = folder.path.rename(tmp_path / "elsewhere")
    assert NightFolder(moved, "s").pinned() == moved / "s-20261128-020000"
    NightFolder(moved, "s").pin(tmp_path / "other" / "run")
    assert NightFolder(moved, "s").pinned() == tmp_path / "other" / "run"
    assert NightFolder(moved, "s").unpin()
    assert NightFolder(moved, "s").pinned() is None
    assert not NightFolder(moved, "s").unpin()


@pytest.mark.parametrize("text", ["", "\n", "one\ntwo\n"])
def test_a_reference_that_names_no_run_is_refused(folder: NightFolder, text: str) -> None:
    (folder.path / REFERENCE_FILE).write_text(text)
    with pytest.raises(StoreError, match="must hold one line"):
        folder.pinned()


def test_a_reference_in_a_home_that_is_not_there_is_refused(folder: NightFolder) -> None:
    (folder.path / REFERENCE_FILE).write_text("~nobody-of-that-name/run\n")
    with pytest.raises(StoreError, match="names a home folder that is not there"):
        folder.pinned()


def test_latest_holds_tonight_only(folder: NightFolder) -> None:
    latest = folder.write_latest({"night.md": "one", "comparison.json": "{}"})
    folder.write_latest({"night.md": "two"})
    assert {one.name: one.read_text() for one in latest.iterdir()} == {"night.md": "two"}


def test_runs_are_told_by_age_also_within_a_second(folder: NightFolder) -> None:
    for name in ("s-20261128-020000-10", "s-20261128-020000", "s-20261127-230000", "s-20261128-020000-2"):
        run_in(folder, name)
    (folder.path / "latest").mkdir()
    (folder.path / "s-20261129-020000").mkdir()
    assert folder.runs() == ("s-20261127-230000", "s-20261128-020000", "s-20261128-020000-2", "s-20261128-020000-10")


def test_only_runs_of_ours_are_deleted(folder: NightFolder, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    (other / "run.json").write_text("x")
    (folder.path / "s-20261101-020000").symlink_to(other)
    (folder.path / "notes").mkdir()
    assert folder.runs() == ()
    for name in ("s-20261101-020000", "notes", "../precious", "..", ""):
        with pytest.raises(StoreError):
            folder.delete(name)
    assert (other / "run.json").is_file()
    place = run_in(folder, "s-20261102-020000", 9000)
    assert folder.size_bytes(place.name) >= 9000
    folder.delete(place.name)
    assert not place.exists()
