"""One writer a folder: a lock file that also holds on a network disk, and is seen through when its owner is dead.

The file is made whole beside and then linked, which is atomic on NFS too; no `flock` has to work there. Only for taking
over a dead owner's lock, which happens on the owner's machine alone, `flock` keeps two rivals apart where it works.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from specbench import clock, processes
from specbench.errors import StoreError
from specbench.processes import Identity

LOCK_FILE: Final = "run.lock"


class Owner(Struct, frozen=True, kw_only=True):
    """Who writes."""

    host: str
    boot: str
    pid: int
    born: str
    since_utc: str

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == processes.host()

    @property
    def is_dead(self) -> bool:
        """Surely so. False where that can't be known from here."""
        if not self.is_here:
            return False
        boot, _, namespace = self.boot.partition("/")
        our_boot, _, our_namespace = processes.boot().partition("/")
        if boot != our_boot:
            return True
        return namespace == our_namespace and not processes.same(Identity(self.pid, self.born))


def ourselves() -> Owner:
    """This process."""
    me = processes.identity_of(os.getpid())
    born = me.born if me else ""
    return Owner(host=processes.host(), boot=processes.boot(), pid=os.getpid(), born=born, since_utc=clock.utc_text())


class Lock:
    """A folder's lock, held from `take` to `release`. `what` writes there: a `run`, with `run.lock`, or a `night`."""

    def __init__(self, folder: Path, what: str = "run") -> None:
        self._what = what
        self._path = folder / f"{what}.lock"
        self._owner = ourselves()

    def take(self) -> None:
        """Raises StoreError naming who holds it."""
        try:
            if not self._make():
                self._take_over()
        except OSError as error:
            raise StoreError(f"{self._path}: can't be written: {error.strerror}") from None

    def release(self) -> None:
        """Leaves alone what is not ours."""
        with contextlib.suppress(OSError):
            if self._read() == self._owner:
                self._path.unlink()

    def _make(self) -> bool:
        """False when there is one."""
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            with beside.open("xb") as file:
                file.write(msgspec.json.encode(self._owner))
                file.flush()
                os.fsync(file.fileno())
            return _linked(beside, self._path)
        finally:
            beside.unlink(missing_ok=True)

    def _take_over(self) -> None:
        with _alone(self._path.parent):
            owner = self._read()
            if owner is not None and not owner.is_dead:
                raise StoreError(self._refusal(owner))
            self._path.unlink(missing_ok=True)
            if not self._make():
                raise StoreError(f"{self._path.parent}: another {self._what} has just begun to write there")

    def _read(self) -> Owner | None:
        """None when there is none."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Owner)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise StoreError(
                f"{self._path}: is no lock of specbench; remove it if no {self._what} writes to {self._path.parent}"
            ) from None

    def _refusal(self, owner: Owner) -> str:
        who = f"process {owner.pid} on {owner.host}, since {owner.since_utc}"
        sentence = f"{self._path.parent}: another {self._what} writes there ({who}); wait for it or stop it"
        unseen = "" if owner.is_here and processes.same(Identity(owner.pid, owner.born)) else _UNSEEN
        return f"{sentence}{unseen.format(path=self._path)}"


_UNSEEN: Final = ". It can't be seen from here: if you know that it is gone, remove {path}"


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileExistsError:
        return source.stat().st_nlink == 2  # an NFS server may have linked and its answer been lost
    except OSError:  # a file system without links: exclusive creation, which is atomic there
        return _copied(source, target)
    return True


def _copied(source: Path, target: Path) -> bool:
    try:
        with target.open("xb") as file:
            file.write(source.read_bytes())
    except FileExistsError:
        return False
    return True


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Among the processes of this machine, where the file system knows `flock`."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
