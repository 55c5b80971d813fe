"""A log file, or a pipe, as blocks of whole lines in a few buffers that are used again and again."""

import bz2
import io
import lzma
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from specbench.errors import SpecbenchError

FIRST_BYTES: Final = 1 << 16
BLOCK_BYTES: Final = 1 << 21
LONGEST_LINE_BYTES: Final = 1 << 25
"""What is longer is cut into lines of this length."""
BUFFERS: Final = 4
"""A block is still looked at while the next ones are filled: the last two are held for a look at the log's end."""
POLL_S: Final = 0.5


PACKED: Final[dict[bytes, Callable[[], Any]]] = {
    b"\x1f\x8b": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lzma.LZMADecompressor,
}
"""First bytes of gz, bz2 and xz files, and what unpacks them."""
UNPACK_BYTES: Final = 1 << 14
WIDE: Final = (b"\xff\xfe", b"\xfe\xff")


def open_log(name: str, follow: bool) -> BinaryIO:
    """The log's bytes, unpacked; `-` is stdin. Raises SpecbenchError."""
    try:
        if name == "-":
            return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
        head = _first_bytes(Path(name))
        if head[:2] in WIDE:
            raise SpecbenchError(
                f"{name}: the text is UTF-16; `iconv -f UTF-16 -t UTF-8 {name} > server.log` makes it readable"
            )
        unpacker = next((PACKED[start] for start in PACKED if head.startswith(start)), None)
        if unpacker is None:
            return Path(name).open("rb", buffering=0)
        if follow:
            raise SpecbenchError(f"{name}: a packed log does not grow; leave out -f")
        return cast(BinaryIO, Unpacked(name, Path(name).open("rb", buffering=0), unpacker))
    except OSError as error:
        raise SpecbenchError(f"{name}: {error.strerror or error}") from None


def _first_bytes(path: Path) -> bytes:
    """Of a file; nothing is taken from a pipe."""
    if not path.is_file():
        return b""
    with path.open("rb", buffering=0) as file:
        return file.read(8)


class Unpacked(io.RawIOBase):
    """A packed log. One that is cut or damaged is read as far as it goes, and says so on stderr."""

    def __init__(self, name: str, source: BinaryIO, unpacker: Callable[[], Any]) -> None:
        self._name, self._source, self._unpacker = name, source, unpacker
        self._current = unpacker()
        self._ready = b""

    def readinto(self, buffer: Any) -> int:
        """So many bytes; 0 at the end."""
        while not self._ready:
            packed = self._current.unused_data or self._source.read(UNPACK_BYTES)
            if not packed:
                return 0 if self._current.eof else self._damaged("it ends too early")
            if self._current.eof:  # several packed files one after the other are one
                self._current = self._unpacker()
            try:
                self._ready = self._current.decompress(packed)
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                return self._damaged(str(error))
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _damaged(self, why: str) -> int:
        sys.stderr.write(f"{self._name}: the packed file is damaged ({why}); what lies before that is read\n")
        self._source.seek(0, os.SEEK_END)
        self._current = self._unpacker()
        return 0

    def close(self) -> None:
        """The file as well."""
        self._source.close()
        super().close()


class Interrupt:
    """Ctrl-C while a log is followed: ends the wait for more, and never what is being counted."""

    def __init__(self) -> None:
        self.waiting = self.asked = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """While it waits. Raises KeyboardInterrupt, also where the signal came before."""
        self.waiting = True
        try:
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self.waiting = False

    def __call__(self, *_: object) -> None:
        """The signal's handler."""
        self.asked = True
        if self.waiting:
            raise KeyboardInterrupt


def blocks(
    source: BinaryIO, follow: bool, interrupt: Interrupt | None = None, path: Path | None = None
) -> Iterator[tuple[memoryview, int]]:
    """Whole lines and their size; when following, a line without its end is waited for, and what
    is empty says that nothing is new. A followed file that is emptied or replaced at its `path` is read from its start.
    Ctrl-C ends the log."""
    interrupt = interrupt or Interrupt()
    buffers = [bytearray(BLOCK_BYTES) for _ in range(BUFFERS)]
    place, have, wanted = 0, 0, FIRST_BYTES
    ended = False
    while not ended:
        buffer = buffers[place]
        try:
            with interrupt.heard():
                size = _fill(source, buffer, have, wanted, follow)
                if size == have and follow:
                    source = source if path is None else _current(source, path)
                    time.sleep(POLL_S)
            ended = size == have and not follow
        except KeyboardInterrupt:
            size, ended = have, True
        if size == have and not ended:
            yield memoryview(buffer), 0
            continue
        cut = size if ended else buffer.rfind(b"\n", have, size) + 1
        if not cut and size >= LONGEST_LINE_BYTES:
            cut = size
        place = (place + 1) % BUFFERS
        buffers[place] = _roomy(buffers[place], size - cut)
        buffers[place][: size - cut] = memoryview(buffer)[cut:size]
        have, wanted = size - cut, min(2 * wanted, BLOCK_BYTES)
        if cut:
            yield memoryview(buffer), cut


def _fill(source: BinaryIO, buffer: bytearray, have: int, wanted: int, follow: bool) -> int:
    """Reads behind what is there; gives the new size. A pipe is read until `wanted`, or when following, once."""
    size, limit = have, max(have + 1, min(have + wanted, len(buffer)))
    with memoryview(buffer) as view:
        while size < limit and (count := source.readinto(view[size:limit])):  # type: ignore[attr-defined]
            size += count
            if follow:
                break
    return size


def _current(source: BinaryIO, path: Path) -> BinaryIO:
    """The file as it is now: from its start when it was emptied, the new one when another lies in its place."""
    try:
        now, own = path.stat(), os.fstat(source.fileno())
        if (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino):
            replaced = path.open("rb", buffering=0)
            source.close()
            return replaced
    except FileNotFoundError:
        return source
    if own.st_size < source.tell():
        source.seek(0)
    return source


def _roomy(buffer: bytearray, have: int) -> bytearray:
    """One with room behind what is kept: a long line makes it grow, and it shrinks again after."""
    size = max(BLOCK_BYTES, 2 * have)
    return buffer if len(buffer) == size else bytearray(size)
