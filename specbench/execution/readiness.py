"""From launched to ready: the ready line and the ready path, raced against death and the start-up limit."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import psutil

from specbench import clock
from specbench.engines import Engine
from specbench.errors import LaunchError
from specbench.execution.control import Control
from specbench.execution.observe import LogTail, last_lines, log_tail
from specbench.execution.server import Runs
from specbench.execution.slots import listeners, process_words
from specbench.units import Second

POLL_S = 0.1
NEWS_S = 2.0
"""A process that breaks its connections is gone a little later: its memory must be freed first."""
NOTICE_S = 1.0
"""Between two notices of how far the start-up is."""


async def wait_ready(
    server: Runs,
    tail: LogTail,
    control: Control,
    engine: Engine,
    log_path: Path,
    limit_s: Second,
    port: int,
    notice: Callable[[str], None],
) -> None:
    """Returns when requests are welcome. Raises LaunchError: `died_while_loading`, `startup_timeout`, or `port_in_use` where
    somebody else answers on its port."""
    begun_s = clock.now_s()
    answered_s: Second | None = None
    noticed_s = begun_s
    while True:
        now_s = clock.now_s()
        if server.exited.done():
            raise death("died_while_loading", server, tail, engine, log_path)
        if now_s - begun_s > limit_s:
            raise too_slow(tail, log_path, limit_s)
        if answered_s is None and await control.answers():
            raise_if_stranger(port, log_path)
            answered_s = now_s
        if answered_s is not None and (tail.ready.is_set() or now_s - answered_s >= engine.endpoints.ready_line_wait_s):
            return
        if now_s - noticed_s >= NOTICE_S:
            noticed_s = now_s
            server.look_around()
            notice(phase_name(tail))
        await asyncio.sleep(POLL_S)


def raise_if_stranger(port: int, log_path: Path) -> None:
    """Whoever answers must be the server, or one of the processes that it started: all of them descend from this one."""
    holders = listeners(port)
    ours = {os.getpid(), *(one.pid for one in psutil.Process().children(recursive=True))}
    if holders and not ours & set(holders):
        who = " and ".join(map(process_words, holders))
        raise LaunchError(
            "port_in_use", f"port {port} was taken by {who}, which answers in the server's stead", log_tail(log_path)
        )


def phase_name(tail: LogTail) -> str:
    """The phase that its log entered last."""
    return tail.phases[-1].name if tail.phases else "starting"


def death(kind: str, server: Runs, tail: LogTail, engine: Engine, log_path: Path) -> LaunchError:
    """The cause as the engine reads it from the log."""
    tail.restore()
    if server.watcher_died:
        cause = "the server's watcher was killed from outside, and the server was ended with it"
        return LaunchError("watcher_died", cause, log_tail(log_path))
    who, log_path = server.dead_rank or ("", log_path)
    cause = engine.death_cause(last_lines(log_path), server.exit_code)
    cause = f"{who}: {cause}" if who else cause
    return LaunchError(kind, cause, log_tail(log_path))


async def raise_if_died(
    server: Runs | None, tail: LogTail | None, engine: Engine, log_path: Path, failed_count: int
) -> None:
    """After a load that ended by itself: where its last requests failed, news of the server's death may still be on its way.

    Raises LaunchError `died_under_load`.
    """
    if server is None or tail is None:
        return
    await asyncio.wait({server.exited}, timeout=NEWS_S if failed_count else 0.0)
    if server.exited.done():
        raise death("died_under_load", server, tail, engine, log_path)


def too_slow(tail: LogTail, log_path: Path, limit_s: Second) -> LaunchError:
    """Names the phase it was in."""
    cause = f"not ready after {limit_s:g} s (startup_timeout_s), last phase: {phase_name(tail)}"
    return LaunchError("startup_timeout", cause, log_tail(log_path))
