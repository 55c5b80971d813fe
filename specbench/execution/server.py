"""One server process and everything it starts: launch, death, and an end that leaves nobody behind.

The server is not our child but its watcher's (`execution.watcher`), which ends it when we are gone. When the watcher is
killed, the kernel ends the server and we end the rest (`execution.reaper`).
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from specbench import processes
from specbench.engines import Command
from specbench.errors import LaunchError
from specbench.execution import reaper
from specbench.execution.slots import listeners, port_is_free, process_words
from specbench.execution.watcher import KILL_WAIT_S
from specbench.processes import Identity
from specbench.records import ServerProcess
from specbench.units import Second

COMMAND: Final = (sys.executable, "-P", "-m", "specbench.execution.watcher")
START_LIMIT_S: Final = 60.0
"""For the watcher to be there: an interpreter from a slow network disk."""
MARGIN_S: Final = 5.0


class Runs(Protocol):
    """What a launch needs of its server, be it one process or a rank on each node."""

    @property
    def exited(self) -> "asyncio.Task[None]":
        """Done when it has ended."""
        ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def watcher_died(self) -> bool: ...

    @property
    def process(self) -> ServerProcess | None: ...

    @property
    def dead_rank(self) -> tuple[str, Path] | None:
        """Which one ended first, in words, and its log; None where there is only one, or rank 0 did."""
        ...

    def look_around(self) -> None: ...

    async def stop(self, grace_s: Second, hurry: asyncio.Event) -> tuple[int, ...]: ...


class Server:
    """A process under its watcher. `exited` is done when it has ended, or when its watcher has."""

    def __init__(self, watcher: asyncio.subprocess.Process, launch_id: str, is_here: bool = True) -> None:
        self._watcher = watcher
        self.launch_id = launch_id
        self._is_here = is_here
        """False: it and its watcher run on another node, and `watcher` is only the way to them."""
        self.exit_code: int | None = None
        """None while it runs, and when nobody could tell; minus the signal when one ended it."""
        self._identity: Identity | None = None
        self._group, self._no_group = "", ""
        """Folder of its control group, or why it has none."""
        self._seen: set[Identity] = set()
        """Descendants: should the watcher be killed, they are ended by what is known of them."""
        self._left: list[int] | None = None
        """What the watcher could not end; None until it has told."""
        self._trouble: int | None = None
        self._silent = False
        """The watcher says no more."""
        self._started = asyncio.Event()
        self._ended = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())
        self.exited = asyncio.create_task(self._until_ended())

    @property
    def dead_rank(self) -> tuple[str, Path] | None:
        """There are no ranks."""
        return None

    @property
    def watcher_died(self) -> bool:
        """It was ended from outside, and the server with it."""
        return self._silent and self.exit_code is None and self._left is None and self._trouble is None

    @property
    def process(self) -> ServerProcess | None:
        """What the manifest says of it."""
        if self._identity is None:
            return None
        pid, born = self._identity
        return ServerProcess(
            launch_id=self.launch_id,
            pid=pid,
            born=born,
            watcher_pid=self._watcher.pid,
            host=processes.host(),
            boot=processes.boot(),
            cgroup=self._group,
            no_cgroup=self._no_group,
        )

    async def _listen(self) -> None:
        assert self._watcher.stdout is not None
        while line := await self._watcher.stdout.readline():
            self._take(json.loads(line))
        self._silent = True
        self._started.set()
        self._ended.set()
        await self._watcher.wait()

    def _take(self, told: dict[str, Any]) -> None:
        if "started" in told:
            self._identity = Identity(told["started"], told["born"])
            self._group, self._no_group = told.get("cgroup", ""), told.get("no_cgroup", "")
            self._started.set()
        elif "ended" in told:
            self.exit_code = told["ended"]
            self._ended.set()
        elif "error" in told:
            self._trouble = told["error"]
        else:
            self._left = told["left"]

    async def _until_ended(self) -> None:
        await self._ended.wait()

    async def begin(self, command: Command) -> None:
        """Gives the order. Raises LaunchError `could_not_start`."""
        given = {name: value for name, value in (os.environ | command.env).items() if name not in command.unset}
        env = reaper.environment_of(self.launch_id, given)
        self._tell({"argv": command.argv, "env": env, "parent": os.getpid() if self._is_here else 0})
        with suppress(TimeoutError):
            async with asyncio.timeout(START_LIMIT_S):
                await self._started.wait()
        if self._trouble is not None:
            raise LaunchError("could_not_start", f"{command.argv[0]} can't be run: {os.strerror(self._trouble)}")
        if self._identity is None:
            raise LaunchError(
                "could_not_start", f"the watcher of {command.argv[0]} did not come up; what it said is in the log"
            )

    def look_around(self) -> None:
        """Remembers the descendants that are there now."""
        if self._identity is not None and self._is_here:
            rows = processes.table()
            self._seen |= {rows[pid].identity for pid in processes.descendants(rows, (self._identity.pid,))}

    async def stop(self, grace_s: Second, hurry: asyncio.Event) -> tuple[int, ...]:
        """SIGTERM to the group, `grace_s` (cut short by `hurry`), SIGKILL to all. Returns pids that survive even that."""
        self._tell({"stop": grace_s})
        hurried = asyncio.create_task(hurry.wait())
        try:
            limit_s = grace_s + KILL_WAIT_S + MARGIN_S
            await asyncio.wait({self._listening, hurried}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurried.cancel()
        if not self._listening.done():
            self._tell({"stop": 0.0})
            await asyncio.wait({self._listening}, timeout=KILL_WAIT_S + MARGIN_S)
        left = await self._end_without_watcher() if self._left is None else set(self._left)
        self._ended.set()
        await self.exited
        return tuple(sorted(left))

    async def _end_without_watcher(self) -> set[int]:
        """It was killed, or hangs. On another node, it and the server end when their pipes do."""
        if not self._is_here:
            with suppress(ProcessLookupError):
                self._watcher.terminate()
            await asyncio.wait({self._listening}, timeout=MARGIN_S)
            with suppress(ProcessLookupError):
                self._watcher.kill()
            await asyncio.wait({self._listening})
            return set()
        remembered = self._seen | ({self._identity} if self._identity else set())
        left = await reaper.end(lambda mark: mark == self.launch_id, remembered)
        with suppress(ProcessLookupError):
            self._watcher.kill()
        await asyncio.wait({self._listening})
        return left

    def _tell(self, word: dict[str, Any]) -> None:
        assert self._watcher.stdin is not None
        with suppress(OSError, RuntimeError):  # it has ended: what it owed is done without it
            self._watcher.stdin.write(json.dumps(word).encode() + b"\n")


async def start(command: Command, log_path: Path, host: str, port: int, watcher_words: Sequence[str] = COMMAND) -> Server:
    """Starts it with stdout and stderr in `log_path`. `watcher_words` may start its watcher on another node; `port` 0: it
    has none here. Raises LaunchError when the port is taken or it can't be run."""
    if port and not port_is_free(host, port):
        holders = " and ".join(map(process_words, listeners(port))) or "another process"
        raise LaunchError("port_in_use", f"port {port} on {host} is in use by {holders}; nothing was launched")
    with log_path.open("ab") as log:
        watcher = await asyncio.create_subprocess_exec(
            *watcher_words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    is_here = watcher_words is COMMAND
    server = Server(watcher, reaper.new_launch_id(is_here), is_here)
    try:
        await server.begin(command)
    except BaseException:
        await asyncio.shield(asyncio.create_task(server.stop(0.0, asyncio.Event())))
        raise
    return server


def uncancel() -> None:
    """The cancellation has been heard: time limits of what is still to be done must work again."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def reached_at(host: str) -> str:
    """Where a server that binds to `host` is reached from this machine."""
    plain = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{plain}]" if ":" in plain else plain
