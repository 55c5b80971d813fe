"""A server under its watcher: started, ended, left without the one or the other; nobody stays."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from specbench import processes
from specbench.engines import Command
from specbench.errors import LaunchError
from specbench.execution import reaper
from specbench.execution.server import COMMAND, Server, start

NEVER = asyncio.Event()
SLEEP = "import time; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
DAEMON = f"import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); {STUBBORN}"
FAMILY = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}])
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], start_new_session=True)
subprocess.run([sys.executable, "-c", {DAEMON!r}])
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], env={{}}, start_new_session=True)
print("all there", flush=True)
{SLEEP}
"""
"""Children of every kind; the last has nothing in its environment."""


def python(code: str, **fields: Any) -> Command:
    return Command(argv=(sys.executable, "-c", code), **fields)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def until(holds: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < give_up_s, "it never came"
        await asyncio.sleep(0.02)


async def started(tmp_path: Path, command: Command, word: str = "") -> Server:
    log = tmp_path / "server.log"
    server = await start(command, log, "127.0.0.1", 0)
    await until(lambda: word in log.read_text())
    return server


def members(server: Server) -> set[int]:
    """All below its watcher."""
    process = server.process
    assert process is not None
    return processes.descendants(processes.table(), (process.watcher_pid,))


def test_its_end_is_told_as_it_was(tmp_path: Path) -> None:
    async def work() -> None:
        for code, expected in (("raise SystemExit(7)", 7), ("import os; os.abort()", -signal.SIGABRT)):
            server = await started(tmp_path, python(code))
            await server.exited
            assert server.exit_code == expected
            assert not server.watcher_died
            assert await server.stop(0.0, NEVER) == ()

    run(work())


def test_its_output_goes_straight_to_the_log_and_its_environment_is_its_own(tmp_path: Path) -> None:
    said = "print(os.environ['GIVEN'], 'HOME' in os.environ); print('err', file=sys.stderr); os.write(1, b'\\xff')"
    code = f"import os, sys; {said}"

    async def work() -> None:
        server = await started(tmp_path, python(code, env={"GIVEN": "é"}, unset=("HOME",)))
        await server.exited
        await server.stop(0.0, NEVER)

    run(work())
    log = (tmp_path / "server.log").read_bytes()
    assert b"\xff" in log
    assert {"é False".encode(), b"err"} <= set(log.replace(b"\xff", b"").splitlines())


def test_the_whole_family_ends_with_it(tmp_path: Path) -> None:
    async def work() -> None:
        server = await started(tmp_path, python(FAMILY), "all there")
        pids = members(server)
        assert len(pids) >= 5
        assert await server.stop(0.1, NEVER) == ()
        assert server.exit_code == -signal.SIGTERM
        assert [pid for pid in pids if (row := processes.row(pid)) and row.runs] == []

    run(work())


def test_hurry_cuts_the_grace_short(tmp_path: Path) -> None:
    async def work() -> None:
        server = await started(tmp_path, python(f"print('there', flush=True); {STUBBORN}"), "there")
        hurry = asyncio.Event()
        stopping = asyncio.create_task(server.stop(500.0, hurry))
        await asyncio.sleep(0)
        hurry.set()
        assert await stopping == ()
        assert server.exit_code in (-signal.SIGKILL, -signal.SIGTERM)

    run(work())


def test_a_killed_watcher_takes_the_server_along_and_the_rest_is_ended_here(tmp_path: Path) -> None:
    async def work() -> None:
        server = await started(tmp_path, python(FAMILY), "all there")
        server.look_around()
        pids = members(server)
        process = server.process
        assert process is not None
        os.kill(process.watcher_pid, signal.SIGKILL)
        await asyncio.wait_for(server.exited, 30)
        assert server.watcher_died
        assert server.exit_code is None
        assert await server.stop(5.0, NEVER) == ()
        assert [pid for pid in pids if (row := processes.row(pid)) and row.runs] == []

    run(work())


def test_a_watcher_that_hangs_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specbench.execution.server.KILL_WAIT_S", 0.2)
    monkeypatch.setattr("specbench.execution.server.MARGIN_S", 0.2)

    async def work() -> None:
        server = await started(tmp_path, python(SLEEP))
        process = server.process
        assert process is not None
        os.kill(process.watcher_pid, signal.SIGSTOP)
        assert await server.stop(0.0, NEVER) == ()
        assert not processes.same(processes.Identity(process.pid, process.born))
        assert processes.row(process.watcher_pid) is None

    run(work())


@pytest.mark.parametrize("argv", [("/nowhere/program",), ("/dev/null",)])
def test_what_can_not_be_run_is_one_sentence(tmp_path: Path, argv: tuple[str, ...]) -> None:
    async def work() -> None:
        with pytest.raises(LaunchError, match=r"can't be run: (No such file|Permission denied)"):
            await start(Command(argv=argv), tmp_path / "server.log", "127.0.0.1", 0)

    run(work())


def test_a_taken_port_names_who_holds_it(tmp_path: Path) -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            with pytest.raises(LaunchError, match=rf"port {port} .* in use by process {os.getpid()} \("):
                await start(python(""), tmp_path / "server.log", "127.0.0.1", port)

    run(work())


def test_a_launch_id_is_orphaned_when_its_maker_is_dead() -> None:
    code = "from specbench.execution.reaper import new_launch_id; print(new_launch_id())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert reaper.is_orphaned(done.stdout.strip())
    assert not reaper.is_orphaned(reaper.new_launch_id())
    namespace, _, rest = reaper.new_launch_id().partition(".")
    assert not reaper.is_orphaned(f"{namespace}1.{rest}"), "another namespace of pids can't be judged"
    assert not reaper.is_orphaned("anything"), "not of our making"


def test_what_a_killed_run_left_is_ended_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "is_orphaned", lambda mark: mark == "a dead run's")  # not what other tests leave
    left, other = (
        subprocess.Popen([sys.executable, "-c", SLEEP], env={**os.environ, processes.MARK: mark})
        for mark in ("a dead run's", "a living one's")
    )
    told: list[str] = []
    try:
        asyncio.run(reaper.end_leftovers(told.append))
        assert told[0].startswith(f"ending what a killed run left here: process {left.pid} (")
        assert left.wait(10) == -signal.SIGKILL
        assert other.poll() is None
        asyncio.run(reaper.end_leftovers(told.append))
        assert len(told) == 1, "there is nothing to tell"
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def test_without_a_subreaper_it_ends_what_it_saw(tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], start_new_session=True)"
    code = f"{child}; print('there', flush=True); {SLEEP}"
    watcher = "import sys; import specbench.execution.watcher as w; w.IS_LINUX = False; sys.exit(w.Watcher().run())"
    order = json.dumps({"argv": [sys.executable, "-c", code], "env": dict(os.environ), "parent": os.getpid()})
    log = tmp_path / "log"
    with log.open("wb") as output:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": output}
        process = subprocess.Popen([sys.executable, "-c", watcher], **pipes)
    assert process.stdin is not None
    process.stdin.write(order.encode() + b"\n")
    process.stdin.flush()
    asyncio.run(until(lambda: "there" in log.read_text()))
    pids = processes.descendants(processes.table(), (process.pid,))
    assert len(pids) == 2
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(said.splitlines()[-1]) == {"left": []}
    assert [pid for pid in pids if (row := processes.row(pid)) and row.runs] == []


def test_the_watcher_starts_with_little() -> None:
    code = (
        "import runpy, sys\n"
        "sys.argv = ['watcher']\n"
        "try:\n"
        "    runpy.run_module('specbench.execution.watcher', run_name='__main__')\n"
        "except SystemExit:\n"
        "    print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([COMMAND[0], "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & {"psutil", "msgspec", "asyncio", "subprocess", "httpx", "uvloop"} == set()
