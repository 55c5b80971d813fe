"""Many lines of a log at once: those whose shape is known by numpy, the others one by one through the grammar."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import LogLine
from specbench.dialects.numbers import line_starts
from specbench.dialects.shape_book import ShapeBook
from specbench.dialects.shape_tree import BEHIND_BYTES, Match
from specbench.dialects.shapes import Shape, Stamp

LEARNING_LINES: Final = 64
"""So many are read one by one before the rest is looked at again with what was learned from them."""
LEARNING_GROWTH: Final = 2
"""Then so many times more: a block of many shapes is not looked at for each few of them."""
READ_BYTES: Final = 16_384
"""So much of a line is read: no line of a server's own is as long."""
UNKNOWN: Final = -1


class Text(Protocol):
    """Where the lines of a block lie."""

    def __getitem__(self, place: slice, /) -> memoryview | bytes:
        """So many bytes of it, less where it ends before."""


class Figures(NamedTuple):
    """Numbers of some lines."""

    lines: NDArray[np.int32]
    """Their places in the block, rising."""
    columns: dict[int, NDArray[np.float64]]
    """See `shapes`; a column that none of them prints is left out, NaN: this line does not. One value stands for all."""
    graphs: NDArray[np.int8]
    """1, 0, or -1 where a line does not say."""

    def column(self, number: int) -> NDArray[np.float64]:
        """One of them."""
        values = self.columns.get(number, np.array([np.nan]))
        return values if len(values) == len(self.lines) else np.full(len(self.lines), values[0])


class Block(NamedTuple):
    """Whole lines, each read."""

    text: Text
    starts: NDArray[np.int32]
    """(lines + 1,): where a line begins; the last is where the next block's first line would."""
    shape_index: NDArray[np.int16]
    """By line, into `stamps`; `UNKNOWN` for a line that is in `slow`."""
    stamps: list[Stamp | None]
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

    def ts(self, index: int) -> str | None:
        """The clock of a line that numpy read. None: the file was cut since."""
        line = self.line(index)
        slot = self._clock(index, line)
        return None if slot is None else line[slice(*slot)].decode("ascii", "replace")

    def after_clock(self, index: int) -> bytes:
        """A line that numpy read, from its clock on. Empty: the file was cut since."""
        line = self.line(index)
        slot = self._clock(index, line)
        return b"" if slot is None else line[slot[0] :]

    def _clock(self, index: int, line: bytes) -> tuple[int, int] | None:
        stamp = self.stamps[int(self.shape_index[index])]
        assert stamp is not None
        return stamp.slot(line)


class BlockReader:
    """Learns shapes while the blocks go by."""

    def __init__(self, parse_line: Callable[[str], LogLine], *, learns: bool = True) -> None:
        self._parse_line = parse_line
        self._book = ShapeBook(parse_line) if learns else None
        """None for a grammar that remembers lines: it must be shown each of them."""
        self.stamps: list[Stamp | None] = []
        """By shape, as in `Block`."""

    def read(self, text: memoryview | bytes, size_bytes: int) -> Block:
        """The first `size_bytes`, which end with a line break or are the log's end. With `BEHIND_BYTES` of anything
        behind them nothing is copied."""
        whole = _padded(text, size_bytes)
        starts = line_starts(whole[:size_bytes])
        shape_index = np.full(len(starts) - 1, UNKNOWN, np.int16)
        matches: list[Match] = []
        slow: list[tuple[int, LogLine]] = []
        rest, learned, wanted = np.arange(len(shape_index)), True, LEARNING_LINES
        while len(rest):
            if learned and self._book is not None:
                is_cut = rest[-1] == len(shape_index) - 1 and starts[-1] > size_bytes
                for match in self._book.match(whole, starts, rest[: len(rest) - is_cut]):
                    shape_index[match.lines] = match.shape
                    matches.append(match)
                rest = rest[shape_index[rest] == UNKNOWN]
            learned = False
            for index in rest[:wanted].tolist():
                raw = bytes(text[starts[index] : starts[index + 1] - 1])
                line = self._parse_line(raw[:READ_BYTES].decode("utf-8", "replace"))
                slow.append((index, line))
                learned |= self._book is not None and self._book.look(raw, line)
            rest, wanted = rest[wanted:], wanted * LEARNING_GROWTH
        return self._block(text, starts, shape_index, slow, matches)

    def _block(
        self,
        text: memoryview | bytes,
        starts: NDArray[np.int32],
        shape_index: NDArray[np.int16],
        slow: list[tuple[int, LogLine]],
        matches: list[Match],
    ) -> Block:
        shapes = self._book.shapes if self._book is not None else []
        self.stamps += [shape.stamp for shape in shapes[len(self.stamps) :]]
        counts: dict[str, int] = {}
        found: dict[str, list[tuple[Shape, Match]]] = {"decode": [], "prefill": []}
        for match in matches:
            shape = shapes[match.shape]
            counts[shape.line.kind] = counts.get(shape.line.kind, 0) + len(match.lines)
            if shape.stamp is not None and shape.line.kind in found:
                found[shape.line.kind].append((shape, match))
        counts = {kind: count for kind, count in counts.items() if count}
        decodes, prefills = (_figures(found[kind], len(shape_index)) for kind in ("decode", "prefill"))
        return Block(text, starts, shape_index, self.stamps, counts, slow, decodes, prefills)


def _padded(text: memoryview | bytes, size_bytes: int) -> NDArray[np.uint8]:
    if len(text) >= size_bytes + BEHIND_BYTES:
        return np.frombuffer(text, np.uint8)
    return np.frombuffer(bytes(text[:size_bytes]) + bytes(BEHIND_BYTES), np.uint8)


def _figures(found: list[tuple[Shape, Match]], line_count: int) -> Figures:
    """Of lines by shape, put in their order."""
    is_in = np.zeros(line_count, np.bool_)
    for _, match in found:
        is_in[match.lines] = True
    lines, place_of = np.flatnonzero(is_in), np.cumsum(is_in, dtype=np.int32)
    printed = {column.number for shape, _ in found for column in shape.columns}
    in_all = printed.intersection(*({column.number for column in shape.columns} for shape, _ in found))
    columns = {one: np.empty(len(lines)) if one in in_all else np.full(len(lines), np.nan) for one in sorted(printed)}
    graphs = np.empty(len(lines), np.int8)
    for shape, match in found:
        places = place_of[match.lines] - 1
        for column, values in zip(shape.columns, match.values, strict=True):
            columns[column.number][places] = values
        graph = shape.line.sample.cuda_graph if shape.line.sample is not None else None
        graphs[places] = -1 if graph is None else int(graph)
    for number, values in columns.items():
        if len(values) and values[0] == values[-1] and (values == values[0]).all():
            columns[number] = values[:1].copy()
    return Figures(lines.astype(np.int32), columns, graphs)
