"""The table of processes, read from `/proc` and through psutil alike."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from specbench import processes
from specbench.processes import MARK, Identity

SLEEP = "import time; print(flush=True); time.sleep(600)"


@pytest.fixture(params=[True, False], ids=["proc", "psutil"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param and not processes.HAS_PROC:
        pytest.skip("this system has no /proc")
    monkeypatch.setattr(processes, "HAS_PROC", request.param)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own, with a launch id."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEP],
        env={**os.environ, MARK: "an-id"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has begun: its environment and command line are its own
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.usefixtures("way")
def test_a_child_is_found_with_all_that_is_known(child: "subprocess.Popen[bytes]") -> None:
    found = processes.row(child.pid)
    assert found is not None
    assert (found.parent, found.group, found.session, found.runs) == (os.getpid(), child.pid, child.pid, True)
    assert processes.same(found.identity)
    assert not processes.same(Identity(child.pid, "another start"))
    assert processes.mark_of(child.pid) == "an-id"
    assert (found.identity, "an-id") in list(processes.marked())
    assert child.pid in processes.descendants(processes.table(), (os.getpid(),))
    assert SLEEP.split(";")[0] in processes.command_line(child.pid)


@pytest.mark.usefixtures("way")
def test_a_zombie_does_not_run_and_a_dead_one_is_nobody(child: "subprocess.Popen[bytes]") -> None:
    identity = processes.identity_of(child.pid)
    assert identity is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    zombie = processes.row(child.pid)
    assert zombie is not None
    assert not zombie.runs
    assert not processes.same(identity)
    child.wait()
    assert processes.row(child.pid) is None
    assert processes.mark_of(child.pid) is None
    assert processes.command_line(child.pid) == ""


def test_descendants_of_a_table_with_a_loop() -> None:
    def row(pid: int, parent: int) -> processes.Row:
        return processes.Row(Identity(pid, ""), parent, 0, 0, True)

    rows = {pid: row(pid, parent) for pid, parent in ((1, 0), (2, 1), (3, 2), (4, 1), (5, 6), (6, 5))}
    assert processes.descendants(rows, (2,)) == {3}
    assert processes.descendants(rows, (1,)) == {2, 3, 4}
    assert processes.descendants(rows, (5,)) == {6}
