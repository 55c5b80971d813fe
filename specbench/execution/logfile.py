"""A log that grows, read piece by piece, whoever deletes, renames or empties it meanwhile."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

Disturbance = Literal["deleted", "replaced", "emptied"]


class LogFile:
    """Holds the file open: what is written to a deleted or renamed one is still read. `told` hears of each disturbance."""

    def __init__(self, path: Path, offset_bytes: int, told: Callable[[Disturbance], None]) -> None:
        self._path = path
        self._offset_bytes = offset_bytes
        self._told = told
        self._file: BinaryIO | None = None
        self._is_gone = False

    def read(self, length_bytes: int) -> bytes:
        """What is new, at most so much; empty when nothing is."""
        if self._file is None and not self._open(self._offset_bytes):
            return b""
        return self._next(length_bytes) or (self._next(length_bytes) if self._look_again() else b"")

    def restore(self) -> None:
        """Writes a deleted log back to where it was, from the file that is still open."""
        if self._file is None or not self._is_gone or self._path.exists():
            return
        self._file.seek(0)
        with self._path.open("wb") as copy:
            shutil.copyfileobj(self._file, copy)

    def close(self) -> None:
        """Once."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, offset_bytes: int) -> bool:
        """False while there is no such file, or it can't be read."""
        try:
            self._file = self._path.open("rb")
        except OSError:
            return False
        self._file.seek(offset_bytes)
        return True

    def _next(self, length_bytes: int) -> bytes:
        return self._file.read(length_bytes) if self._file is not None else b""

    def _look_again(self) -> bool:
        """At the end of what is there: whether it is still the log. True when there may be more elsewhere."""
        assert self._file is not None
        held = os.fstat(self._file.fileno())
        if held.st_size < self._file.tell():
            self._told("emptied")
            self._file.seek(0)
            return True
        try:
            named = self._path.stat()
        except OSError:
            if not self._is_gone:
                self._is_gone = True
                self._told("deleted")
            return False
        if (named.st_ino, named.st_dev) == (held.st_ino, held.st_dev) or self._is_gone:
            return False
        self._told("replaced")
        self._file.close()
        self._file = None
        return self._open(0)
