"""The system's table of processes: who is whose child, who still runs, and which process a stored pid really names.

Imports the standard library alone and little of it: the watcher of a server starts with it. Where there is no `/proc`
(macOS), psutil is asked instead.
"""

import functools
import os
import platform
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
HAS_PROC: Final = (PROC / "self" / "stat").exists()
MARK: Final = "SPECBENCH_LAUNCH_ID"
"""In the environment of a launched server and so of all that it starts, whatever session or parent they have."""


class Identity(NamedTuple):
    """One process and no other: a pid is given again, a pid with its start is not."""

    pid: int
    born: str
    """When it started, in the system's own unit; only ever compared."""


class Row(NamedTuple):
    """A line of the table."""

    identity: Identity
    parent: int
    group: int
    session: int
    runs: bool
    """False for a zombie."""


def row(pid: int) -> Row | None:
    """None when there is no such process."""
    return _proc_row(pid) if HAS_PROC else _psutil_row(pid)


def _proc_row(pid: int) -> Row | None:
    try:
        raw = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    words = raw.rpartition(b")")[2].split()
    state, parent, group, session = words[0], int(words[1]), int(words[2]), int(words[3])
    return Row(Identity(pid, words[19].decode()), parent, group, session, state not in (b"Z", b"X"))


def _psutil_row(pid: int) -> Row | None:
    import psutil

    try:
        process = psutil.Process(pid)
        runs = process.status() != psutil.STATUS_ZOMBIE
        born = f"{process.create_time():.2f}"
        return Row(Identity(pid, born), process.ppid(), os.getpgid(pid), os.getsid(pid), runs)
    except (psutil.Error, OSError):
        return None


def table() -> dict[int, Row]:
    """Every process, by pid."""
    return {pid: found for pid in _pids() if (found := row(pid)) is not None}


def _pids() -> list[int]:
    if HAS_PROC:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208 (Path objects cost more)
    import psutil

    return psutil.pids()


def descendants(rows: dict[int, Row], roots: Collection[int]) -> set[int]:
    """Pids below the roots, zombies included; not the roots themselves."""
    children: dict[int, list[int]] = {}
    for pid, one in rows.items():
        children.setdefault(one.parent, []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting += below
    return found - set(roots)


def same(identity: Identity) -> bool:
    """Whether that very process still runs."""
    found = row(identity.pid)
    return found is not None and found.identity == identity and found.runs


def identity_of(pid: int) -> Identity | None:
    """None when there is no such process."""
    found = row(pid)
    return found.identity if found else None


def mark_of(pid: int) -> str | None:
    """The launch id in a process's environment; None where it has none or may not be read."""
    if HAS_PROC:
        return _proc_mark(pid)
    import psutil

    try:
        return psutil.Process(pid).environ().get(MARK)
    except (psutil.Error, OSError):
        return None


def _proc_mark(pid: int) -> str | None:
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    start = f"{MARK}=".encode()
    return next((one[len(start) :].decode(errors="replace") for one in raw.split(b"\0") if one.startswith(start)), None)


def marked() -> Iterator[tuple[Identity, str]]:
    """Every process of ours that runs and carries a launch id, and that id."""
    for pid in _pids():
        mark = mark_of(pid) if pid != os.getpid() else None
        found = row(pid) if mark is not None else None
        if mark is not None and found is not None and found.runs:
            yield found.identity, mark


def command_line(pid: int) -> str:
    """As `ps` shows it, shortened; empty when it can't be read."""
    if not HAS_PROC:
        import psutil

        try:
            return " ".join(psutil.Process(pid).cmdline())[:200]
        except psutil.Error:
            return ""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:200]


@functools.cache
def boot() -> str:
    """Which boot of the machine and which namespace of pids; pids of two of them can't be compared."""
    return f"{_text(PROC / 'sys' / 'kernel' / 'random' / 'boot_id')}/{_link(PROC / 'self' / 'ns' / 'pid')}"


@functools.cache
def host() -> str:
    """The machine's name, and a digest of its id where it has one: names are given twice."""
    import hashlib

    name, number = platform.node(), _text(Path("/etc/machine-id"))
    return f"{name} ({hashlib.sha256(number.encode()).hexdigest()[:8]})" if number else name


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 (a word, no path)
    except OSError:
        return ""
