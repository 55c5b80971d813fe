"""A server's control group: where there can be one, and what only it can find."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from specbench import processes
from specbench.execution import cgroups, reaper
from tests.unit.execution.test_server import SLEEP, until

ESCAPES: Final = f"""
import subprocess, sys
child = subprocess.Popen(["env", "-i", "setsid", sys.executable, "-c", {SLEEP!r}], stdout=2)
print("child", child.pid, flush=True)
{SLEEP}
"""
HARNESS: Final = """
import asyncio, msgspec, pathlib, sys
from specbench.engines import Command
from specbench.execution.server import start

async def work():
    server = await start(Command(argv=(sys.executable, "-c", sys.argv[1])), pathlib.Path(sys.argv[2]), "127.0.0.1", 0)
    print(msgspec.json.encode(server.process).decode(), flush=True)
    await server.exited

asyncio.run(work())
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for a mounted hierarchy; our own group is `/jobs/ours` of it."""
    own = tmp_path / "a b" / "jobs" / "ours"
    own.mkdir(parents=True)
    point = str(tmp_path / "a b").replace(" ", "\\040")
    (tmp_path / "mounts").write_text(
        f"23 1 0:2 / /proc rw - proc proc rw\n41 31 0:38 / {point} rw,relatime - cgroup2 none rw\n"
    )
    (tmp_path / "own").write_text("3:cpuset:/\n0::/jobs/ours\n")
    monkeypatch.setattr(cgroups, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cgroups, "OWN", tmp_path / "own")
    monkeypatch.delenv(cgroups.JOB, raising=False)
    return own


def test_our_own_folder_is_found_through_its_mount(tree: Path) -> None:
    assert cgroups.own_folder() == tree
    cgroups.MOUNTS.write_text(cgroups.MOUNTS.read_text().replace("0:38 /", "0:38 /jobs/ours"))
    assert cgroups.own_folder() == tree.parents[1], "a mount may show a part of the hierarchy only"
    cgroups.MOUNTS.write_text(cgroups.MOUNTS.read_text().replace("/jobs/ours", "/others"))
    assert cgroups.own_folder() is None


@pytest.mark.parametrize("name", ["MOUNTS", "OWN"])
def test_without_a_mount_there_is_none_and_it_is_said(tree: Path, name: str) -> None:
    path: Path = getattr(cgroups, name)
    path.write_text("")
    assert cgroups.make("one") == (None, "our own control group (version 2) is not mounted here")
    path.unlink()
    assert cgroups.make("one")[0] is None
    assert cgroups.found(lambda _: True) == ()


def test_what_forbids_one_is_said(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cgroups.make("old") == (None, "this kernel has no cgroup.kill (Linux 5.14 has it)")
    assert list(tree.iterdir()) == []
    (tree / "specbench-taken").touch()
    assert cgroups.make("taken") == (None, f"{tree} is not ours to write: File exists")
    assert cgroups.make("") == (None, "the launch has no id")
    monkeypatch.setenv(cgroups.JOB, "7")
    assert cgroups.make("one") == (None, "in a Slurm job the groups are Slurm's")


def test_groups_are_found_in_the_whole_tree_and_we_never_end_ourselves(tree: Path) -> None:
    other, ours = tree.parent / "specbench-other" / "below", tree / "specbench-ours"
    for folder in (other, ours):
        folder.mkdir(parents=True)
    assert set(cgroups.found(lambda _: True)) == {other.parent, ours}
    assert cgroups.found("other".__eq__) == (other.parent,)
    (other / cgroups.MEMBERS).write_text("0\n12\n")
    assert cgroups.members(other.parent) == {12}
    for within, expected in ((other.parent, True), (tree.parent, False)):
        (within / cgroups.KILL).write_text("0")
        cgroups.kill(within)
        assert ((within / cgroups.KILL).read_text() == "1") is expected
    assert cgroups.remove(ours)


def mounted() -> str:
    """Why there is no real group here; empty where there is one."""
    folder, why = cgroups.make("a.trial")
    if folder is not None:
        cgroups.remove(folder)
    return why


def test_a_child_with_no_environment_is_ended_by_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watcher and specbench are killed at once: no parent, no session and no mark leads to it any more."""
    if why := mounted():
        pytest.skip(f"there is no control group to try: {why}")
    log = tmp_path / "server.log"
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, ESCAPES, str(log)], stdout=subprocess.PIPE, text=True)
    assert harness.stdout is not None
    process = json.loads(harness.stdout.readline())
    folder = Path(process["cgroup"])
    asyncio.run(until(lambda: "\n" in log.read_text()))
    child = processes.identity_of(int(log.read_text().split()[1]))
    assert child is not None
    os.kill(process["watcher_pid"], signal.SIGSTOP)  # so that it has no time to see the other's end
    for pid in (harness.pid, process["watcher_pid"]):
        os.kill(pid, signal.SIGKILL)
    harness.communicate()
    asyncio.run(until(lambda: not processes.same(processes.Identity(process["pid"], process["born"]))))
    assert processes.same(child)
    assert processes.mark_of(child.pid) is None
    assert reaper.is_orphaned(process["launch_id"])

    monkeypatch.setattr(reaper, "is_orphaned", process["launch_id"].__eq__)  # not what other tests leave
    told: list[str] = []
    asyncio.run(reaper.end_leftovers(told.append))
    assert told[0].startswith(f"ending what a killed run left here: process {child.pid} (")
    assert not processes.same(child)
    assert not folder.exists()


def test_a_group_is_gone_with_its_server(tmp_path: Path) -> None:
    if why := mounted():
        pytest.skip(f"there is no control group to try: {why}")
    log, code = tmp_path / "server.log", "print(open('/proc/self/cgroup').read(), flush=True)"
    words = [sys.executable, "-c", HARNESS.replace("exited", "stop(1.0, asyncio.Event())"), code, str(log)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    process = json.loads(done.stdout)
    assert "no_cgroup" not in process
    assert Path(process["cgroup"]).name == f"specbench-{process['launch_id']}"
    assert not Path(process["cgroup"]).exists()
