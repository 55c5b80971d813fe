"""Ends what a server left behind when its watcher could not: found by the launch id in its environment or in the name of its
control group, never by its own name.

A launch id names the specbench that made it, by pid, start and namespace of pids. So any later run on this machine can
tell a server whose specbench is dead from one of a run that goes on, and from a stranger's.
"""

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from specbench import clock, processes
from specbench.execution import cgroups
from specbench.execution.slots import process_words
from specbench.processes import MARK, Identity
from specbench.units import Second

POLL_S: Final = 0.05
KILL_WAIT_S: Final = 10.0
NAMED_COUNT: Final = 3
WATCHER: Final = "specbench.execution.watcher"
WATCHER_S: Final = 14.0
"""How long a dead run's watchers get to end their servers before it is done here."""


def new_launch_id(is_here: bool = True) -> str:
    """`<namespace>.<pid>.<start>.<random>` of this process. On another node our pid says nothing: the namespace is `far`
    then, which no machine has, so that nobody there takes the launch for a dead run's."""
    me = processes.identity_of(os.getpid())
    return f"{_namespace() if is_here else 'far'}.{os.getpid()}.{me.born if me else ''}.{secrets.token_hex(4)}"


def _namespace() -> str:
    return "".join(letter for letter in processes.boot().partition("/")[2] if letter.isdigit())


def environment_of(launch_id: str, base: Mapping[str, str]) -> dict[str, str]:
    """`base` with the mark, and the word that keeps setproctitle (SGLang, vLLM) from writing over it."""
    return {**base, MARK: launch_id, "SPT_NOENV": "1"}


def _are_watched(found: Collection[Identity]) -> bool:
    """Whether one of them has a watcher, which is ending them just now."""
    parents = {row.parent for one in found if (row := processes.row(one.pid)) is not None}
    return any(WATCHER in processes.command_line(pid) for pid in parents)


def is_orphaned(launch_id: str) -> bool:
    """Whether the specbench that made it is surely dead. False where that can't be known: another container's, say."""
    namespace, _, rest = launch_id.partition(".")
    pid, _, rest = rest.partition(".")
    born = rest.rpartition(".")[0]
    if namespace != _namespace() or not pid.isdigit() or not born:
        return False
    return not processes.same(Identity(int(pid), born))


def alive(
    wanted: Callable[[str], bool], remembered: Collection[Identity] = (), groups: Collection[Path] | None = None
) -> set[Identity]:
    """Processes whose launch id is wanted, the remembered ones, those in `groups` (None: in groups of wanted launches), and
    all below them; only what runs, never ourselves."""
    groups = cgroups.found(wanted) if groups is None else groups
    inside = set().union(*map(cgroups.members, groups))
    rows = processes.table()
    roots = {rows[pid].identity for pid in inside if pid in rows}
    roots |= {identity for identity, mark in processes.marked() if wanted(mark)}
    roots |= {one for one in remembered if one.pid in rows and rows[one.pid].identity == one}
    below = processes.descendants(rows, {one.pid for one in roots})
    found = roots | {rows[pid].identity for pid in below}
    return {one for one in found if one.pid != os.getpid() and one.pid in rows and rows[one.pid].runs}


def kill(found: Collection[Identity]) -> None:
    """SIGKILL to each that is still the process that was found."""
    for one in found:
        if processes.same(one):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one.pid, signal.SIGKILL)


async def end(wanted: Callable[[str], bool], remembered: Collection[Identity] = (), patience_s: Second = 0.0) -> set[int]:
    """Waits `patience_s` for them to go by themselves, kills what is left, and returns the pids that survive even that."""
    groups = cgroups.found(wanted)
    patient_until_s = clock.now_s() + patience_s
    while (left := alive(wanted, remembered, groups)) and clock.now_s() < patient_until_s:  # noqa: ASYNC110 (others end them)
        await asyncio.sleep(POLL_S)
    give_up_s = clock.now_s() + KILL_WAIT_S
    while left and clock.now_s() < give_up_s:
        kill(left)
        for group in groups:
            cgroups.kill(group)
        await asyncio.sleep(POLL_S)
        left = alive(wanted, remembered, groups)
    for group in groups:
        cgroups.remove(group)
    return {one.pid for one in left}


async def end_leftovers(tell: Callable[[str], None]) -> None:
    """Ends servers on this machine whose specbench was killed, and tells which."""
    found = sorted(alive(is_orphaned))
    if not found:
        for group in cgroups.found(is_orphaned):
            cgroups.remove(group)
        return
    names = ", ".join(process_words(one.pid) for one in found[:NAMED_COUNT])
    more = f" and {len(found) - NAMED_COUNT} more" if len(found) > NAMED_COUNT else ""
    tell(f"ending what a killed run left here: {names}{more}")
    left = await end(is_orphaned, found, WATCHER_S if _are_watched(found) else 0.0)
    if left:
        tell(f"processes {sorted(left)} of it could not be ended")
