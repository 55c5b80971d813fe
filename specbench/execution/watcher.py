"""The watcher of one server: a small process between specbench and the server, which outlives neither.

    python -m specbench.execution.watcher        started by `execution.server`, by nobody else

Its standard input is its life line. The first line is the order (`argv`, `env`, `parent`, which is 0 when specbench is on
another node); then `{"stop": grace_s}` may come, several times. At the end of that pipe, which the kernel closes however
specbench died, it ends the server's whole tree: SIGTERM to the server's group, a grace, SIGKILL to every descendant. On
Linux it is a child subreaper, so whatever the server started comes to it, also what called `setsid` or forked twice; and
the server gets SIGKILL from the kernel when the watcher itself is killed. Where a control group can be made, the server is
put into one (`execution.cgroups`), which is killed and removed at its end. Elsewhere it remembers the descendants that it
saw once a second, and that is all it can end.

Its standard output tells, a JSON line each: `{"started": pid}` or `{"error": errno}`, then `{"ended": exit code}` and
`{"left": pids}`. Its standard error is the server's log, which the server writes by itself.

Imports little, so that it is there in a few hundredths of a second and needs nothing that could be missing.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from specbench import clock, processes
from specbench.execution import cgroups
from specbench.units import Second

IS_LINUX: Final = sys.platform == "linux"
PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
LIFE_LINE: Final = 0
TOLD: Final = 1
LOG: Final = 2
ORPHAN_GRACE_S: Final = 3.0
"""What a server gets to end by itself once specbench is dead; with the wait below it stays under 15 s."""
KILL_WAIT_S: Final = 10.0
"""Time that killed processes get to be gone; a driver may hold them while it frees GPU memory."""
POLL_S: Final = 0.05
LOOK_S: Final = 1.0
"""Between two looks at the descendants where the kernel does not bring them here."""
HEARD: Final = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
COULD_NOT_RUN: Final = 127
REMOVE_S: Final = 1.0
"""For the kernel to see that a group is empty."""


class Watcher:
    """Watches one server from its start until nothing of it is left."""

    def __init__(self) -> None:
        self._rest = b""
        self._server = 0
        self._group: Path | None = None
        self._ended = False
        self._stop_s: Second | None = None
        """By the clock: when patience ends; None until somebody asks for the end."""
        self._seen: set[processes.Identity] = set()
        """Only where there is no subreaper."""
        self._wake = _wake_up_on_signals()
        self._sources = [LIFE_LINE, self._wake]

    def run(self) -> int:
        """The exit code: 0 when nothing is left."""
        order = self._order()
        if order is None:
            return 0
        self._group, why = cgroups.make(order["env"].get(processes.MARK, ""))
        self._server = start(order, self._group, why)
        if not self._server:
            self._remove_group()
            return 0
        while self._stop_s is None:
            self._turn(None if IS_LINUX else LOOK_S)
        return self._end()

    def _order(self) -> dict[str, Any] | None:
        """None when specbench died before it gave one."""
        while b"\n" not in self._rest:
            piece = os.read(LIFE_LINE, 1 << 16)
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        return order if order["parent"] in (os.getppid(), 0) else None

    def _turn(self, limit_s: Second | None) -> None:
        """Waits for a word, a signal or the limit, and takes what came."""
        ready = select.select(self._sources, [], [], limit_s)[0]
        if self._wake in ready and signal.SIGTERM in os.read(self._wake, 1 << 10):
            self._ask(ORPHAN_GRACE_S)
        if LIFE_LINE in ready:
            self._hear()
        self._reap()
        if not IS_LINUX:
            self._look()

    def _hear(self) -> None:
        piece = os.read(LIFE_LINE, 1 << 16)
        if not piece:
            self._sources.remove(LIFE_LINE)
            self._ask(ORPHAN_GRACE_S)
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._ask(json.loads(line)["stop"])

    def _ask(self, grace_s: Second) -> None:
        """To end. A later word may shorten the grace, never lengthen it."""
        until_s = clock.now_s() + grace_s
        self._stop_s = until_s if self._stop_s is None else min(self._stop_s, until_s)

    def _reap(self) -> None:
        """The server, and whatever was left without a parent."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self._server:
                self._ended = True
                tell({"ended": os.waitstatus_to_exitcode(status)})

    def _end(self) -> int:
        if not IS_LINUX:
            self._look()
        if not self._ended:  # a group whose leader was reaped may be somebody else's by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._server, signal.SIGTERM)
        while self._alive() and self._stop_s is not None and clock.now_s() < self._stop_s:
            self._turn(POLL_S)
        give_up_s = clock.now_s() + KILL_WAIT_S
        while (left := self._alive()) and clock.now_s() < give_up_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if self._group is not None:
                cgroups.kill(self._group)
            self._turn(POLL_S)
        self._reap()
        self._remove_group()
        tell({"left": left})
        return 1 if left else 0

    def _alive(self) -> list[int]:
        """Descendants that run."""
        self._reap()
        rows = processes.table()
        below = processes.descendants(rows, (os.getpid(),))
        below |= cgroups.members(self._group) if self._group else set()
        below |= {one.pid for one in self._seen if one.pid in rows and rows[one.pid].identity == one}
        return sorted(pid for pid in below if pid in rows and rows[pid].runs)

    def _remove_group(self) -> None:
        give_up_s = clock.now_s() + REMOVE_S
        while self._group is not None and not cgroups.remove(self._group) and clock.now_s() < give_up_s:
            select.select([], [], [], POLL_S)

    def _look(self) -> None:
        rows = processes.table()
        self._seen |= {rows[pid].identity for pid in processes.descendants(rows, (os.getpid(),))}


def start(order: dict[str, Any], group: Path | None = None, why: str = "") -> int:
    """The server's pid, 0 when it could not be run; told in both cases, with its group or `why` it has none."""
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(order, outward, group)
    os.close(outward)
    troubles = dict(line.split(b" ") for line in _whole(inward).splitlines())
    os.close(inward)
    if b"run" in troubles:
        os.waitpid(pid, 0)
        tell({"error": int(troubles[b"run"])})
        return 0
    if group is not None and b"enter" in troubles:
        group, why = None, f"{group} can't be entered: {os.strerror(int(troubles[b'enter']))}"
    found = processes.identity_of(pid)
    told = {"cgroup": str(group)} if group else {"no_cgroup": why}
    tell({"started": pid, "born": found.born if found else "", **told})
    return pid


def _whole(inward: int) -> bytes:
    """All that is written before the end of the pipe, which comes with the server's program."""
    whole = b""
    while piece := os.read(inward, 64):
        whole += piece
    return whole


def _become(order: dict[str, Any], outward: int, group: Path | None) -> NoReturn:
    """In the new process: a session and a group of its own, the log as its output, then the server's program."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        _enter(group, outward)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, a program expects them as they were
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(LOG, 1)
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        os.write(outward, f"run {error.errno}\n".encode())
    finally:
        os._exit(COULD_NOT_RUN)


def _enter(group: Path | None, outward: int) -> None:
    """It runs without one as well."""
    try:
        if group is not None:
            cgroups.enter(group)
    except OSError as error:
        os.write(outward, f"enter {error.errno}\n".encode())


def prctl(option: int, value: int) -> None:
    """Does nothing where the system has no such call."""
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def tell(word: dict[str, Any]) -> None:
    """Nobody may be left to hear it."""
    with contextlib.suppress(OSError):
        os.write(TOLD, json.dumps(word).encode() + b"\n")


def _wake_up_on_signals() -> int:
    """The end to read from: each signal's number as a byte."""
    inward, outward = os.pipe()
    os.set_blocking(outward, False)
    signal.set_wakeup_fd(outward, warn_on_full_buffer=False)
    for number in HEARD:
        if signal.getsignal(number) is not signal.SIG_IGN:  # under `nohup` the server must ignore a hangup as well
            signal.signal(number, lambda *_: None)
    return inward


if __name__ == "__main__":
    sys.exit(Watcher().run())
