"""The parts of a log that tell why a server died: its front, its end, and what stands around faults in between."""

from collections import deque
from collections.abc import Callable
from typing import Final

from specbench.dialects.blocks import Block

KEPT_LINES: Final = 5000
"""From the front, and from the end."""
BEFORE_LINES: Final = 300
AFTER_LINES: Final = 1500
"""Around a fault: a traceback stands before it, its message and other ranks' deaths behind."""
MOST_FAULTS: Final = 3
"""The first ones: later faults are consequences."""
MOST_HELD: Final = 2
"""Blocks that are held as they are; whoever reads the log leaves them alone so long."""
COPIED_BYTES: Final = 1 << 18
"""Smaller blocks, as they come from a log that grows, are copied."""
KEPT_CHARACTERS: Final = 1000


class Ends:
    """Pieces of text with the number of their first line."""

    def __init__(self) -> None:
        self._head: list[tuple[int, bytes]] = []
        self._around: list[tuple[int, bytes]] = []
        self._tail: deque[tuple[int, Block | bytes, int]] = deque()
        """First line, text, count of lines."""
        self._reached = 0

    def take(self, block: Block, lines_before: int) -> None:
        """The next block; `lines_before`: how many lines of the log stand before it."""
        count = block.line_count
        if not count:
            return
        if lines_before < KEPT_LINES:
            self._head.append((lines_before + 1, _piece(block, 0, min(count, KEPT_LINES - lines_before))))
        self._tail.append((lines_before + 1, block if block.starts[-1] > COPIED_BYTES else _piece(block, 0, count), count))
        while sum(one[2] for one in self._tail) - self._tail[0][2] >= KEPT_LINES or self._held() > MOST_HELD:
            self._tail.popleft()
        faults = (index for index, line in block.slow if any(one.kind == "fatal" for one in (line, *line.also)))
        for index in faults:
            if len(self._around) < MOST_FAULTS and lines_before + index >= self._reached:
                first, end = max(0, index - BEFORE_LINES), min(count, index + AFTER_LINES)
                self._around.append((lines_before + first + 1, _piece(block, first, end)))
                self._reached = lines_before + end

    def _held(self) -> int:
        return sum(isinstance(one[1], Block) for one in self._tail)

    def kept(self) -> tuple[list[str], Callable[[int], int]]:
        """The lines, and what makes a 1-based place among them a line number of the log."""
        by_number: dict[int, str] = {}
        for number, piece in (*self._head, *self._around, *(_last_lines(*one) for one in self._tail)):
            lines = piece.split(b"\n")
            for place, line in enumerate(lines[:-1] if lines[-1] == b"" else lines):
                by_number.setdefault(
                    number + place, line[: 4 * KEPT_CHARACTERS].decode("utf-8", "replace")[:KEPT_CHARACTERS]
                )
        numbers = sorted(by_number)
        return [by_number[number] for number in numbers], lambda place: numbers[place - 1]


def _last_lines(number: int, text: Block | bytes, count: int) -> tuple[int, bytes]:
    if isinstance(text, bytes):
        return number, text
    first = max(0, count - KEPT_LINES)
    return number + first, _piece(text, first, count)


def _piece(block: Block, first: int, end: int) -> bytes:
    if end <= first:
        return b""
    return bytes(block.text[int(block.starts[first]) : int(block.starts[end]) - 1]) + b"\n"
