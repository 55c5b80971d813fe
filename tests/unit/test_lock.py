"""Two runs never write to one folder, and a dead one keeps nobody out."""

import multiprocessing
import os
import re
import subprocess
import sys
from multiprocessing.queues import Queue
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from specbench import processes
from specbench.errors import StoreError
from specbench.store import LOCK_FILE, Lock
from specbench.store.lock import Owner, ourselves


def leave(folder: Path, **changes: object) -> Owner:
    """A lock of somebody else's."""
    owner = structs.replace(ourselves(), **changes)
    (folder / LOCK_FILE).write_bytes(msgspec.json.encode(owner))
    return owner


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_second_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    first.take()
    with pytest.raises(StoreError, match=rf"another run writes there \(process {os.getpid()} on .*wait for it or stop it$"):
        Lock(tmp_path).take()
    first.release()
    Lock(tmp_path).take()
    assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]


def test_a_dead_owner_keeps_nobody_out(tmp_path: Path) -> None:
    leave(tmp_path, pid=dead_pid())
    Lock(tmp_path).take()


def test_a_pid_that_was_given_again_is_not_the_owner(tmp_path: Path) -> None:
    leave(tmp_path, born="another time")
    Lock(tmp_path).take()


def test_a_machine_that_was_started_again_has_no_owners(tmp_path: Path) -> None:
    leave(tmp_path, boot=f"another-boot/{processes.boot().partition('/')[2]}")
    Lock(tmp_path).take()


@pytest.mark.parametrize(
    "changes", [{"host": "far-away"}, {"boot": f"{processes.boot().partition('/')[0]}/pid:[1]", "pid": 1}]
)
def test_an_owner_that_can_not_be_seen_is_believed(tmp_path: Path, changes: dict[str, object]) -> None:
    owner = leave(tmp_path, **changes)
    with pytest.raises(StoreError, match=rf"on {re.escape(owner.host)}.*if you know that it is gone, remove .*{LOCK_FILE}"):
        Lock(tmp_path).take()
    assert (tmp_path / LOCK_FILE).exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
def test_what_is_no_lock_is_not_removed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOCK_FILE).write_bytes(content)
    with pytest.raises(StoreError, match="is no lock of specbench; remove it"):
        Lock(tmp_path).take()


def test_release_leaves_what_is_not_ours(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    lock.take()
    other = leave(tmp_path, host="far-away")
    lock.release()
    assert msgspec.json.decode((tmp_path / LOCK_FILE).read_bytes(), type=Owner) == other


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    Lock(tmp_path).take()
    with pytest.raises(StoreError, match="another run writes there"):
        Lock(tmp_path).take()


def race(folder: Path, start: "multiprocessing.synchronize.Barrier", won: "Queue[bool]") -> None:
    lock = Lock(folder)
    start.wait()
    try:
        lock.take()
    except StoreError:
        won.put(False)
    else:
        won.put(True)
    start.wait()  # alive until all have tried


@pytest.mark.parametrize("stale", [False, True])
def test_of_many_rivals_one_wins(tmp_path: Path, stale: bool) -> None:
    if stale:
        leave(tmp_path, pid=dead_pid())
    context = multiprocessing.get_context("fork")
    start, won = context.Barrier(6), context.Queue()
    rivals = [context.Process(target=race, args=(tmp_path, start, won)) for _ in range(6)]
    for rival in rivals:
        rival.start()
    results = [won.get(timeout=60) for _ in rivals]
    for rival in rivals:
        rival.join()
    assert sorted(results) == [False] * 5 + [True]


def test_a_night_has_a_lock_of_its_own(tmp_path: Path) -> None:
    night = Lock(tmp_path, "night")
    night.take()
    Lock(tmp_path).take()
    with pytest.raises(StoreError, match="another night writes there"):
        Lock(tmp_path, "night").take()
    night.release()
    assert not (tmp_path / "night.lock").exists()
