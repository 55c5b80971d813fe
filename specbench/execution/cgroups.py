"""A control group (version 2) for each server, where our own group's folder is writable: all that it holds is ended at once.

A process can leave its session, its parents and its environment, but not its control group. So this finds what the death of
the watcher together with specbench would let through. Nothing is limited by it: no controller is switched on.

Imports little: the watcher of a server starts with it.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/self/mountinfo")
OWN: Final = Path("/proc/self/cgroup")
PREFIX: Final = "specbench-"
MEMBERS: Final = "cgroup.procs"
KILL: Final = "cgroup.kill"
JOB: Final = "SLURM_JOB_ID"
ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def make(launch_id: str) -> tuple[Path | None, str]:
    """A folder for one server, or None and why there can't be one."""
    if not launch_id or JOB in os.environ:
        return None, "in a Slurm job the groups are Slurm's" if launch_id else "the launch has no id"
    own = own_folder()
    if own is None:
        return None, "our own control group (version 2) is not mounted here"
    folder = own / f"{PREFIX}{launch_id}"
    try:
        folder.mkdir()
    except OSError as error:
        return None, f"{own} is not ours to write: {error.strerror}"
    if not (folder / KILL).exists():
        remove(folder)
        return None, "this kernel has no cgroup.kill (Linux 5.14 has it)"
    return folder, ""


def enter(folder: Path) -> None:
    """Moves this process there. Raises OSError."""
    (folder / MEMBERS).write_bytes(b"0")


def members(folder: Path) -> set[int]:
    """Pids that run in it and in groups below."""
    found: set[int] = set()
    for path, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            found.update(map(int, Path(path, MEMBERS).read_bytes().split()))
    return found - {0}  # of another namespace of pids


def kill(folder: Path) -> None:
    """SIGKILL to all that runs in it and below, but never to ourselves."""
    own = own_folder()
    if own is not None and own.is_relative_to(folder):
        return
    with contextlib.suppress(OSError):  # it is gone, or somebody else's
        (folder / KILL).write_bytes(b"1")


def remove(folder: Path) -> bool:
    """Takes away an empty one and those below. Whether it is gone."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    return not folder.exists()


def found(wanted: Callable[[str], bool]) -> tuple[Path, ...]:
    """Folders of servers whose launch id is wanted, wherever in the tree: a later run may stand elsewhere in it."""
    top = next((point for point, root in _mounts() if root == "/"), own_folder())
    return tuple(folder for folder in _ours(top) if wanted(folder.name.removeprefix(PREFIX))) if top else ()


def _ours(root: Path) -> Iterator[Path]:
    for path, names, _ in os.walk(root):
        yield from (Path(path, name) for name in names if name.startswith(PREFIX))
        names[:] = [name for name in names if not name.startswith(PREFIX)]


def own_folder() -> Path | None:
    """Of the group that this process is in; None where no mount shows it."""
    try:
        lines = OWN.read_text().splitlines()
    except OSError:
        return None
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::/")), None)
    if own is None:
        return None
    for point, root in _mounts():
        if Path(own).is_relative_to(root) and (folder := point / Path(own).relative_to(root)).is_dir():
            return folder
    return None


def _mounts() -> Iterator[tuple[Path, str]]:
    """Where hierarchies of version 2 are mounted, and which folder of the hierarchy each shows."""
    try:
        lines = MOUNTS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        left, _, right = line.partition(" - ")
        words = left.split()
        if right.startswith("cgroup2 ") and len(words) > 4:
            point, root = (ESCAPED.sub(lambda one: chr(int(one.group(1), 8)), word) for word in (words[4], words[3]))
            yield Path(point), root
