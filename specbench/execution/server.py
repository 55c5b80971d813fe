"""One server process and everything it starts: launch, death, and an end that leaves nobody behind."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from specbench import clock
from specbench.engines import Command
from specbench.errors import LaunchError
from specbench.execution.slots import port_is_free
from specbench.units import Second

POLL_S = 0.05
KILL_WAIT_S: Final = 10.0
"""Time that a killed process gets to be gone; a driver may hold it while it frees GPU memory."""


class Server:
    """A process in a session of its own. `exited` is done when it has ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._seen: dict[int, psutil.Process] = {}
        """Descendants by pid, also those that left the group."""
        self.exited = asyncio.create_task(process.wait())

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal when one ended it."""
        return self._process.returncode

    def look_around(self) -> None:
        """Remembers the descendants that are there now: those of a dead parent can't be found any more."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                self._seen.setdefault(child.pid, child)

    async def stop(self, grace_s: Second, hurry: asyncio.Event) -> tuple[int, ...]:
        """SIGTERM to the group, `grace_s` (cut short by `hurry`), SIGKILL to all. Returns pids that survive even that."""
        self.look_around()
        self._signal_group(signal.SIGTERM)
        await self._gone_within(grace_s, hurry)
        self._signal_group(signal.SIGKILL)
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()
        await self._gone_within(KILL_WAIT_S, asyncio.Event())
        if self.exit_code is not None:
            await self.exited
        return self.alive()

    async def _gone_within(self, limit_s: Second, hurry: asyncio.Event) -> None:
        give_up_s = clock.now_s() + limit_s
        while (self.exit_code is None or self.alive()) and clock.now_s() < give_up_s and not hurry.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), POLL_S)

    def alive(self) -> tuple[int, ...]:
        """Pids of the group and of its known descendants that still run; zombies don't."""
        members = {process.pid: process for process in psutil.process_iter() if self._in_group(process.pid)}
        return tuple(sorted(pid for pid, process in (self._seen | members).items() if _runs(process)))

    def _in_group(self, pid: int) -> bool:
        try:
            return os.getpgid(pid) == self._process.pid
        except (ProcessLookupError, PermissionError):
            return False

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def start(command: Command, log_path: Path, host: str, port: int) -> Server:
    """Starts it with stdout and stderr in `log_path`. Raises LaunchError when the port is taken or it can't be run."""
    if not port_is_free(host, port):
        raise LaunchError("port_in_use", f"port {port} on {host} is in use by another process; nothing was launched")
    environment = {name: value for name, value in (os.environ | command.env).items() if name not in command.unset}
    with log_path.open("ab") as log:
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise LaunchError("could_not_start", f"{command.argv[0]} can't be run: {error.strerror}") from None
    return Server(process)


def uncancel() -> None:
    """The cancellation has been heard: time limits of what is still to be done must work again."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def reached_at(host: str) -> str:
    """Where a server that binds to `host` is reached from this machine."""
    plain = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{plain}]" if ":" in plain else plain
