"""The results folder: what is written is read again, and nothing doubtful is read at all."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specbench.errors import StoreError
from specbench.plan import Trial
from specbench.records import Failure, Observation, RequestRecord, RunRecord, TrialRecord
from specbench.store import (
    MANIFEST_FILE,
    OBSERVATIONS_FILE,
    REQUESTS_FILE,
    RUN_FILE,
    LineFile,
    RunWriter,
    create_run,
    inside,
    read_run,
    replace_file,
)

TRIAL = Trial(variant="plain", launch_index=0, block_index=0, order_index=0)
LATER = Trial(variant="other", launch_index=0, block_index=0, order_index=1)


def request(index: int) -> RequestRecord:
    return RequestRecord(
        request_index=index,
        prompt_id=f"p{index}",
        category="code",
        workload="chat",
        concurrency=1,
        due_s=1.0,
        sent_s=1.25,
        done_s=2.0,
        chunk_s=(1.5, 2.0),
        chunk_tokens=(2, 1),
        output_text="é\n",
    )


@pytest.fixture
def run(tmp_path: Path) -> RunWriter:
    """A run of two trials of which one was begun."""
    writer = create_run(tmp_path / "results", "small", "name: small\n")
    writer.write_run(
        RunRecord(
            suite_name="small",
            suite_path="small.yaml",
            suite={},
            trials=(TRIAL, LATER),
            started_utc="2026-01-01T00:00:00Z",
            specbench_version="0",
        )
    )
    with writer.open_trial(TRIAL) as trial:
        trial.write_manifest(TrialRecord(trial=TRIAL, engine="fake"))
        trial.add_request(request(0))
        trial.add_request(request(1))
        trial.add_observation(Observation(at_s=1.0, source="log", name="decode", value={"accept_length": 2.5}))
    return writer


def test_what_is_written_is_read(run: RunWriter) -> None:
    stored = read_run(run.folder)
    (trial,) = stored.trials
    assert stored.run.trials == (TRIAL, LATER)
    assert trial.requests == (request(0), request(1))
    assert trial.observations[0].value == {"accept_length": 2.5}
    assert stored.dropped_count == 0
    assert (run.folder / "suite.yaml").read_text() == "name: small\n"


def test_lines_are_on_disk_before_the_writer_is_closed(run: RunWriter) -> None:
    with run.open_trial(LATER) as trial:
        trial.write_manifest(TrialRecord(trial=LATER, engine="fake", failure=Failure(kind="x", cause="y")))
        trial.add_request(request(5))
        assert [one.requests for one in read_run(run.folder).trials][1] == (request(5),)


@pytest.mark.parametrize("name", [REQUESTS_FILE, OBSERVATIONS_FILE])
def test_a_last_line_that_was_cut_off_is_left_out_and_counted(run: RunWriter, name: str) -> None:
    path = run.folder / TRIAL.folder / name
    whole = path.read_bytes()
    start = whole.rfind(b"\n", 0, -1) + 1
    for length in range(start + 1, len(whole)):
        path.write_bytes(whole[:length])
        stored = read_run(run.folder)
        assert stored.dropped_count == 1
        assert len(stored.trials[0].requests) + len(stored.trials[0].observations) == 2


def test_a_bad_line_in_the_middle_is_an_error_with_its_line(run: RunWriter) -> None:
    path = run.folder / TRIAL.folder / REQUESTS_FILE
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:40] + b"\n" + second)
    with pytest.raises(StoreError, match=rf"{REQUESTS_FILE}:2: can't be read as a RequestRecord"):
        read_run(run.folder)


def test_a_number_of_the_wrong_type_is_an_error(run: RunWriter) -> None:
    path = run.folder / TRIAL.folder / REQUESTS_FILE
    path.write_text(path.read_text().replace('"done_s":2.0', '"done_s":"2.0"', 1))
    with pytest.raises(StoreError, match="done_s"):
        read_run(run.folder)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [(2, "newer specbench"), (None, "no schema_version"), ("1", "no schema_version"), (True, "no schema_version")],
)
@pytest.mark.parametrize("name", [RUN_FILE, f"{TRIAL.folder}/{MANIFEST_FILE}"])
def test_a_version_that_is_not_ours(run: RunWriter, name: str, version: object, sentence: str) -> None:
    path = run.folder / name
    value = json.loads(path.read_text())
    value["schema_version"] = version
    path.write_text(json.dumps(value))
    with pytest.raises(StoreError, match=sentence):
        read_run(run.folder)


def test_a_folder_that_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no result of specbench: it has no run\.json"):
        read_run(tmp_path)
    (tmp_path / RUN_FILE).write_text("[1, 2")
    with pytest.raises(StoreError, match="can't be read as a RunRecord"):
        read_run(tmp_path)
    (tmp_path / RUN_FILE).write_text("[1, 2]")
    with pytest.raises(StoreError, match="no schema_version"):
        read_run(tmp_path)


def test_a_manifest_of_another_trial_is_an_error(run: RunWriter) -> None:
    replace_file(
        run.folder / TRIAL.folder / MANIFEST_FILE, b'{"schema_version": 1, "trial": %s, "engine": "fake"}' % _later()
    )
    with pytest.raises(StoreError, match=r"holds another trial .* other\.launch0"):
        read_run(run.folder)


def _later() -> bytes:
    return b'{"variant": "other", "launch_index": 0, "block_index": 0, "order_index": 1}'


def test_a_trial_cut_off_before_its_manifest_was_not_begun(run: RunWriter) -> None:
    (run.folder / TRIAL.folder / MANIFEST_FILE).unlink()
    assert read_run(run.folder).trials == ()


@pytest.mark.parametrize("name", ["../outside", "..", ".", "", "a/b", "/tmp"])
def test_no_path_leads_out(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="no folder directly below it"):
        inside(tmp_path, name)


def test_a_run_file_that_leads_out_is_refused(run: RunWriter) -> None:
    path = run.folder / RUN_FILE
    path.write_text(path.read_text().replace('"variant": "plain"', '"variant": "../plain"'))
    with pytest.raises(StoreError, match="no folder directly below it"):
        read_run(run.folder)


def test_runs_of_the_same_second_get_a_suffix(tmp_path: Path) -> None:
    folders = [create_run(tmp_path, "small", "").folder for _ in range(3)]
    stems = {folder.name[: len("small-20260101-000000")] for folder in folders}
    assert len(set(folders)) == 3
    assert len(stems) < 3


def test_results_that_can_not_be_written_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(StoreError, match="results can't be written there"):
        create_run(tmp_path / "results", "small", "")


def test_a_trial_is_never_opened_twice(run: RunWriter) -> None:
    with pytest.raises(StoreError, match="can't be made"):
        run.open_trial(TRIAL)


def test_replacing_leaves_no_part(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        replace_file(tmp_path / "a", content)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"two")]


def test_a_full_disk_is_one_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    lines = LineFile(Path("/dev/full"))
    with pytest.raises(StoreError, match="No space left on device"):
        lines.append(Observation(at_s=0.0, source="log", name="x"))
    with pytest.raises(StoreError, match="can't be written"):
        lines.close()


def test_what_did_not_fit_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="a: can't be written: No space left on device"):
        replace_file(tmp_path / "a", b"new")
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"a": "old"}


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="can't be written: No such file or directory"):
        replace_file(tmp_path / "gone" / "manifest.json", b"{}")


def test_json_nested_too_deep_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema_version": 1, "suite": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(StoreError, match="can't be read as a RunRecord"):
        read_run(tmp_path)


def test_lines_that_could_not_be_synced_forbid_complete_alone(run: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: LineFile) -> None:
        raise StoreError("no space")

    with run.open_trial(LATER) as trial, monkeypatch.context() as patch:
        patch.setattr(LineFile, "sync", full)
        for complete in (True, False):
            with pytest.raises(StoreError, match="no space"):
                trial.write_manifest(TrialRecord(trial=LATER, engine="fake", complete=complete))
            assert (trial.folder / MANIFEST_FILE).exists() is not complete


def test_a_launch_is_set_aside_whole_and_can_be_begun_again(run: RunWriter) -> None:
    for number in (1, 2):
        aside = run.set_aside(TRIAL)
        assert aside == run.folder / "aside" / f"{TRIAL.folder}.{number}"
        assert (aside / REQUESTS_FILE).exists() is (number == 1)
        assert read_run(run.folder).trials == ()
        (run.folder / TRIAL.folder).mkdir()
    assert run.set_aside(LATER) is None


def test_a_line_that_was_written_in_part_is_taken_back(tmp_path: Path) -> None:
    lines = LineFile(tmp_path / "lines")
    lines.append(Observation(at_s=0.0, source="log", name="x"))
    whole = (tmp_path / "lines").read_bytes()
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from specbench.errors import StoreError\n"
        "from specbench.records import Observation\n"
        "from specbench.store import LineFile\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try:\n"
        "    LineFile(Path(sys.argv[1])).append(Observation(at_s=0.0, source='log', name='y' * 100))\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "lines"), str(len(whole) + 10)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "only 10 of" in done.stdout
    assert (tmp_path / "lines").read_bytes() == whole
    lines.close()


def test_a_launch_that_was_set_aside_does_not_write_into_the_one_that_is_done_again(tmp_path: Path) -> None:
    """A cluster may give a node up while its job lives on."""
    run = RunWriter(tmp_path)
    with run.open_trial(TRIAL) as old:
        old.add_request(request(0))
        aside = run.set_aside(TRIAL)
        assert aside is not None
        with run.open_trial(TRIAL) as new:
            new.write_manifest(TrialRecord(trial=TRIAL, engine="new"))
            old.add_request(request(1))
            with pytest.raises(StoreError, match="was set aside while this launch ran"):
                old.write_manifest(TrialRecord(trial=TRIAL, engine="old", complete=True))
    assert json.loads((tmp_path / TRIAL.folder / MANIFEST_FILE).read_text())["engine"] == "new"
    assert (tmp_path / TRIAL.folder / REQUESTS_FILE).read_text() == ""
    assert len((aside / REQUESTS_FILE).read_text().splitlines()) == 2
