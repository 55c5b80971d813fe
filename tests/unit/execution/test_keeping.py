"""What gets into a launch's folder, and what happens when nothing more does."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from specbench.errors import StoreError
from specbench.execution.keeping import RESERVE_FILE, Keeper, clean_file
from specbench.plan import Trial
from specbench.records import Observation, TrialRecord
from specbench.store import LineFile, TrialWriter, read_trial
from specbench.suite.secrets import HIDDEN, Secrets
from tests.unit.analysis.runs import request

TRIAL = Trial(variant="v", launch_index=0, block_index=0, order_index=0)
PLANTED = "pl4nted-value"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[TrialWriter]:
    with TrialWriter(tmp_path / TRIAL.folder) as made:
        yield made


def keeper(writer: TrialWriter, planned_count: int = 10) -> Keeper:
    made = Keeper(writer, Secrets([PLANTED]), planned_count)
    made.open()
    return made


def record() -> TrialRecord:
    return TrialRecord(trial=TRIAL, engine="fake", argv=("run", "--api-key", "x"), environment={"note": PLANTED})


def test_nothing_secret_gets_through(writer: TrialWriter) -> None:
    kept = keeper(writer)
    kept.write_manifest(record())
    kept.add_request(request(output_text=f"it is {PLANTED}", error=f"no access with Bearer {PLANTED}"))
    kept.add_observation(Observation(at_s=1.0, source="log", name="warning", value={"text": PLANTED, "n": [1, PLANTED]}))
    kept.new_log().write_text(f"one\n{PLANTED}\r\nlast {PLANTED}")
    kept.log_path.with_name("server.log.1").write_text(PLANTED)
    kept.close()
    writer.close()
    assert all(PLANTED not in path.read_text() for path in writer.folder.iterdir())
    stored = read_trial(writer.folder, TRIAL)
    assert stored.requests[0].output_text == f"it is {HIDDEN}"
    assert stored.record.argv == ("run", "--api-key", HIDDEN)
    assert kept.log_path.read_bytes() == f"one\n{HIDDEN}\r\nlast {HIDDEN}".encode()
    assert kept.log_path.stat().st_mode & 0o077 == 0
    assert not (writer.folder / RESERVE_FILE).exists()


def test_a_log_without_a_secret_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"\xff\xfe not UTF-8\rprogress\r\n\0end")
    before = path.stat().st_ino, path.read_bytes()
    clean_file(path, Secrets([PLANTED]))
    assert (path.stat().st_ino, path.read_bytes()) == before
    path.write_bytes(b"\xff" + PLANTED.encode() + b"\r\xfe")
    clean_file(path, Secrets([PLANTED]))
    assert path.read_bytes() == b"\xff" + HIDDEN.encode() + b"\r\xfe"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(PLANTED)
    (tmp_path / "server.log").symlink_to(other)
    clean_file(tmp_path / "server.log", Secrets([PLANTED]))
    assert other.read_text() == PLANTED


def full_disk(self: LineFile, value: object) -> None:
    try:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise StoreError(f"requests.jsonl: can't be written: {error.strerror}") from None


def test_a_full_disk(writer: TrialWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keeper(writer, planned_count=4)
    kept.write_manifest(record())
    kept.add_request(request())
    with monkeypatch.context() as patched:
        patched.setattr(LineFile, "append", full_disk)
        with pytest.raises(StoreError, match=r"the disk is full: .* for 1 of 4 requests and needs about \d+\.\d\d MiB more"):
            kept.add_request(request(1))
    assert kept.is_full
    assert not (writer.folder / RESERVE_FILE).exists(), "its space is for the last manifest"
    with pytest.raises(StoreError, match="No space left on device"):
        kept.add_observation(Observation(at_s=1.0, source="log", name="x"))
    kept.is_ending = True
    kept.add_request(request(2))
    kept.write_manifest(record())
    kept.close()
    writer.close()
    assert [one.request_index for one in read_trial(writer.folder, TRIAL).requests] == [0]


def test_other_trouble_is_no_full_disk(writer: TrialWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keeper(writer)

    def refused(self: LineFile, value: object) -> None:
        raise StoreError("requests.jsonl: can't be written: Permission denied")

    monkeypatch.setattr(LineFile, "append", refused)
    with pytest.raises(StoreError) as caught:
        kept.add_request(request())
    assert (str(caught.value), kept.is_full) == ("requests.jsonl: can't be written: Permission denied", False)
