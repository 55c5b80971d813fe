"""Many lines of a log at once: those whose shape is known by numpy, the others one by one through the grammar."""

from collections.abc import Callable
from itertools import repeat
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import LogLine
from specbench.dialects.shapes import COLUMN_COUNT, LONGEST_BYTES, Shape, Slot, learn

MOST_SHAPES: Final = 4096
MOST_SEEN: Final = 4096
READ_BYTES: Final = 16_384
"""So much of a line is read: no line of a server's own is as long."""
MASK: Final = bytes(ord("0") if chr(code).isascii() and chr(code).isdigit() else code for code in range(256))
UNKNOWN: Final = -1
PIN_LINES: Final = 300


class Text(Protocol):
    """Where the lines of a block lie."""

    def __getitem__(self, place: slice, /) -> memoryview | bytes:
        """So many bytes of it, less where it ends before."""


class Figures(NamedTuple):
    """Numbers of some lines."""

    lines: NDArray[np.int32]
    """Their places in the block, rising."""
    columns: dict[int, NDArray[np.float64]]
    """See `shapes`; a column that none of them prints is left out, NaN: this line does not."""
    graphs: NDArray[np.int8]
    """1, 0, or -1 where a line does not say."""

    def column(self, number: int) -> NDArray[np.float64]:
        """One of them."""
        return self.columns[number] if number in self.columns else np.full(len(self.lines), np.nan)


class Block(NamedTuple):
    """Whole lines, each read."""

    text: Text
    starts: NDArray[np.int32]
    """(lines + 1,): where a line begins; the last is where the next block's first line would."""
    shape_index: NDArray[np.int16]
    """By line, into `stamps`; `UNKNOWN` for a line that is in `slow`."""
    stamps: list[Slot | None]
    """By shape: where in a line its clock stands."""
    counts: dict[str, int]
    """Lines by kind of the grammar, those in `slow` left out."""
    slow: list[tuple[int, LogLine]]
    decodes: Figures
    """Decode lines that numpy read."""
    prefills: Figures

    @property
    def line_count(self) -> int:
        """Lines in it."""
        return len(self.shape_index)

    def line(self, index: int) -> bytes:
        """Its bytes, without the line break."""
        return bytes(self.text[int(self.starts[index]) : int(self.starts[index + 1]) - 1])

    def ts(self, index: int) -> str:
        """The clock of a line that numpy read."""
        place, start = self.stamps[self.shape_index[index]], int(self.starts[index])
        assert place is not None
        return bytes(self.text[start + place.start : start + place.end]).decode("ascii", "replace")

    def after_clock(self, index: int) -> bytes:
        """A line that numpy read, from its clock on."""
        place = self.stamps[self.shape_index[index]]
        return self.line(index)[place.start if place else 0 :]


class BlockReader:
    """Learns shapes while the blocks go by."""

    def __init__(self, parse_line: Callable[[str], LogLine], *, learns: bool = True) -> None:
        self._parse_line = parse_line
        self._learns = learns
        """False for a grammar that remembers lines: it must be shown each of them."""
        self._index: dict[bytes, int] = {}
        """Line with its digits masked to the place of its shape."""
        self._shapes: list[Shape] = []
        self._lengths: list[int] = []
        self.stamps: list[Slot | None] = []
        """By shape, as in `Block`."""
        self._pins: list[bytes] = []
        """A few lines of the first block, so that Python keeps the memory of all for the next; new pages cost more."""
        self._seen: dict[bytes, bool] = {}
        """Digits masked; True once it can't be learned."""

    def read(self, text: memoryview | bytes, size_bytes: int) -> Block:
        """The first `size_bytes`, which end with a line break or are the log's end."""
        whole = text if isinstance(text, bytes) and len(text) == size_bytes else bytes(text[:size_bytes])
        masked = whole.translate(MASK).split(b"\n")
        if not masked[-1]:  # behind the last line break
            masked.pop()
        self._pins = self._pins or masked[::PIN_LINES]
        shape_index = np.fromiter(map(self._index.get, masked, repeat(UNKNOWN)), np.int16, len(masked))
        unknown = np.flatnonzero(shape_index == UNKNOWN).tolist()
        starts = self._starts(masked, shape_index, unknown)
        slow: list[tuple[int, LogLine]] = []
        for index in unknown:
            known = self._index.get(masked[index])
            if known is None:
                raw = bytes(text[starts[index] : starts[index + 1] - 1])
                slow.append((index, self._read_slowly(raw, masked[index])))
            else:
                shape_index[index] = known
        return self._block(text, starts, shape_index, slow)

    def _starts(self, masked: list[bytes], shape_index: NDArray[np.int16], unknown: list[int]) -> NDArray[np.int32]:
        """By the lengths of the shapes, and of the other lines."""
        lengths = np.array([*self._lengths, 0], np.int32)[shape_index]
        lengths[unknown] = [len(masked[index]) for index in unknown]
        starts = np.zeros(len(masked) + 1, np.int32)
        np.cumsum(lengths + 1, out=starts[1:])
        return starts

    def _read_slowly(self, raw: bytes, masked: bytes) -> LogLine:
        line = self._parse_line(raw[:READ_BYTES].decode("utf-8", "replace"))
        if self._learns and len(raw) <= LONGEST_BYTES and len(self._shapes) < MOST_SHAPES:
            seen = self._seen.get(masked)
            if seen is False and (shape := learn(raw, self._parse_line)) is not None:
                self._index[masked] = len(self._shapes)
                self._shapes.append(shape)
                self._lengths.append(len(masked))
                self.stamps.append(shape.ts)
            if seen is not True:
                self._seen[masked] = seen is False
            if len(self._seen) > MOST_SEEN:
                self._seen.clear()
        return line

    def _block(
        self,
        text: memoryview | bytes,
        starts: NDArray[np.int32],
        shape_index: NDArray[np.int16],
        slow: list[tuple[int, LogLine]],
    ) -> Block:
        """Takes the numbers out of all lines whose shape is known, a shape at a time."""
        order = np.argsort(shape_index, kind="stable")
        sorted_index = shape_index[order]
        flat = np.frombuffer(text, np.uint8)
        counts: dict[str, int] = {}
        found: dict[str, list[tuple[NDArray[np.intp], Shape]]] = {"decode": [], "prefill": []}
        for lines in np.split(order, np.flatnonzero(np.diff(sorted_index)) + 1):
            if not len(lines) or shape_index[lines[0]] == UNKNOWN:
                continue
            shape = self._shapes[shape_index[lines[0]]]
            counts[shape.line.kind] = counts.get(shape.line.kind, 0) + len(lines)
            if shape.ts is not None and shape.line.kind in found:
                found[shape.line.kind].append((lines, shape))
        decodes, prefills = (_figures(groups, flat, starts) for groups in (found["decode"], found["prefill"]))
        return Block(text, starts, shape_index, self.stamps, counts, slow, decodes, prefills)


def _figures(groups: list[tuple[NDArray[np.intp], Shape]], flat: NDArray[np.uint8], starts: NDArray[np.int32]) -> Figures:
    """Of lines in groups of one shape each."""
    if not groups:
        return Figures(np.zeros(0, np.int32), {}, np.zeros(0, np.int8))
    lines = np.concatenate([group for group, _ in groups])
    table = np.empty((COLUMN_COUNT, len(lines)))
    graphs = np.empty(len(lines), np.int8)
    printed = {column for _, shape in groups for column in shape.columns}
    begin = 0
    for group, shape in groups:
        end = begin + len(group)
        for column in printed - set(shape.columns):
            table[column, begin:end] = np.nan
        if shape.columns:
            table[list(shape.columns), begin:end] = shape.values(flat, starts[group])
        graph = shape.line.sample.cuda_graph if shape.line.sample is not None else None
        graphs[begin:end] = -1 if graph is None else int(graph)
        begin = end
    order = np.argsort(lines, kind="stable")
    return Figures(
        lines[order].astype(np.int32), {column: table[column, order] for column in sorted(printed)}, graphs[order]
    )
