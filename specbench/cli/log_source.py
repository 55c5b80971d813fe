"""A log file, or a pipe, as blocks of whole lines in a few buffers that are used again and again."""

import time
from collections.abc import Iterator
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

    def __call__(self, *_: object) -> None:
        """The signal's handler."""
        self.asked = True
        if self.waiting:
            raise KeyboardInterrupt


def blocks(source: BinaryIO, follow: bool, interrupt: Interrupt | None = None) -> Iterator[tuple[memoryview, int]]:
    """Whole lines and their size; when following, a line without its end is waited for, and what
    is empty says that nothing is new. Ctrl-C ends the log."""
    interrupt = interrupt or Interrupt()
    buffers = [bytearray(BLOCK_BYTES + SLACK_BYTES) for _ in range(BUFFERS)]
    place, have, wanted = 0, 0, FIRST_BYTES
    ended = False
    while not ended:
        buffer = buffers[place]
        interrupt.waiting = True
        try:
            if interrupt.asked:
                raise KeyboardInterrupt
            size = _fill(source, buffer, have, wanted, follow)
            ended = size == have and not follow
            if size == have and follow:
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            size, ended = have, True
        finally:
            interrupt.waiting = False
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


def _roomy(buffer: bytearray, have: int) -> bytearray:
    """One with room behind what is kept: a long line makes it grow, and it shrinks again after."""
    size = max(BLOCK_BYTES, 2 * have) + SLACK_BYTES
    return buffer if len(buffer) == size else bytearray(size)
