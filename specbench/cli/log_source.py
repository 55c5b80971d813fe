"""A log file, or a pipe, as blocks of whole lines in a few buffers that are used again and again."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from specbench.dialects.blocks import SLACK_BYTES

FIRST_BYTES: Final = 1 << 16
BLOCK_BYTES: Final = 1 << 21
LONGEST_LINE_BYTES: Final = 1 << 25
"""What is longer is cut into lines of this length."""
BUFFERS: Final = 7
"""A block is still looked at while so many less one are filled: those being read, and the last ones, held."""
POLL_S: Final = 0.5


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
    buffers = [bytearray(BLOCK_BYTES + SLACK_BYTES) for _ in range(BUFFERS)]
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
    size, limit = have, max(have + 1, min(have + wanted, len(buffer) - SLACK_BYTES))
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
    size = max(BLOCK_BYTES, 2 * have) + SLACK_BYTES
    return buffer if len(buffer) == size else bytearray(size)
