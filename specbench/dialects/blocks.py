"""Many lines of a log at once: those whose shape is known by numpy, the others one by one through the grammar."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import LogLine
from specbench.dialects.shape_index import Match, ShapeIndex
from specbench.dialects.shapes import LONGEST_BYTES, MASK, Shape, Slot, learn

MOST_SHAPES: Final = 4096
MOST_SEEN: Final = 4096
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
        self._known = ShapeIndex()
        self.stamps: list[Slot | None] = []
        """By shape, as in `Block`."""
        self._seen: dict[bytes, bool] = {}
        """Digits masked; True once it can't be learned."""

    def read(self, text: memoryview | bytes, size_bytes: int) -> Block:
        """The first `size_bytes`, which end with a line break or are the log's end."""
        flat = np.frombuffer(text, np.uint8, size_bytes) if size_bytes else np.zeros(0, np.uint8)
        starts = _starts(flat)
        shape_index = np.full(len(starts) - 1, UNKNOWN, np.int16)
        matches = list(self._known.match(flat, starts, np.arange(len(shape_index))))
        for match in matches:
            shape_index[match.lines] = match.shape
        slow: list[tuple[int, LogLine]] = []
        now_known: list[int] = []
        for index in np.flatnonzero(shape_index == UNKNOWN).tolist():
            raw = bytes(text[starts[index] : starts[index + 1] - 1])
            masked = raw.translate(MASK)
            if masked in self._known.places:
                now_known.append(index)
            else:
                slow.append((index, self._read_slowly(raw, masked)))
        for match in self._known.match(flat, starts, np.array(now_known, np.intp)):
            shape_index[match.lines] = match.shape
            matches.append(match)
        return self._block(text, starts, shape_index, slow, matches)

    def _read_slowly(self, raw: bytes, masked: bytes) -> LogLine:
        line = self._parse_line(raw[:READ_BYTES].decode("utf-8", "replace"))
        if self._learns and len(raw) <= LONGEST_BYTES and len(self._known.shapes) < MOST_SHAPES:
            seen = self._seen.get(masked)
            if seen is False and (shape := learn(raw, self._parse_line)) is not None:
                self._known.add(shape)
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
        matches: list[Match],
    ) -> Block:
        counts: dict[str, int] = {}
        found: dict[str, list[tuple[Shape, Match]]] = {"decode": [], "prefill": []}
        for match in matches:
            shape = self._known.shapes[match.shape]
            counts[shape.line.kind] = counts.get(shape.line.kind, 0) + len(match.lines)
            if shape.ts is not None and shape.line.kind in found:
                found[shape.line.kind].append((shape, match))
        counts = {kind: count for kind, count in counts.items() if count}
        decodes, prefills = (_figures(found[kind], len(shape_index)) for kind in ("decode", "prefill"))
        return Block(text, starts, shape_index, self.stamps, counts, slow, decodes, prefills)


def _starts(text: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Where lines begin, and where the next block's first line would."""
    ends = _ones(np.packbits(text == ord("\n"), bitorder="little"))
    is_cut = bool(len(text)) and text[-1] != ord("\n")
    starts = np.zeros(len(ends) + 1 + is_cut, np.int32)
    starts[1 : len(ends) + 1] = ends + 1
    if is_cut:
        starts[-1] = len(text) + 1
    return starts


def _ones(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The places of ones among many zeros, 64 of them at a time; `np.flatnonzero` looks at each."""
    words = np.concatenate((bits, np.zeros(-len(bits) % 8, np.uint8))).view("<u8")
    places = np.flatnonzero(words)
    words, found = words[places], [np.zeros(0, np.int64)]
    places *= 64
    while len(words):
        rest = words & (words - np.uint64(1))
        exponents = (words ^ rest).astype(np.float64).view(np.int64) >> 52  # of the lowest one
        found.append(places + exponents - 1023)
        words, places = rest[rest != 0], places[rest != 0]
    return np.sort(np.concatenate(found)) if len(found) > 2 else found[-1]


def _figures(found: list[tuple[Shape, Match]], line_count: int) -> Figures:
    """Of lines by shape, put in their order."""
    is_in = np.zeros(line_count, np.bool_)
    for _, match in found:
        is_in[match.lines] = True
    lines, place_of = np.flatnonzero(is_in), np.cumsum(is_in, dtype=np.int32)
    printed = {column for shape, _ in found for column in shape.columns}
    in_all = printed.intersection(*(shape.columns for shape, _ in found))
    columns = {one: np.empty(len(lines)) if one in in_all else np.full(len(lines), np.nan) for one in sorted(printed)}
    graphs = np.empty(len(lines), np.int8)
    for shape, match in found:
        places = place_of[match.lines] - 1
        for column, values in zip(shape.columns, match.values, strict=True):
            columns[column][places] = values
        graph = shape.line.sample.cuda_graph if shape.line.sample is not None else None
        graphs[places] = -1 if graph is None else int(graph)
    return Figures(lines.astype(np.int32), columns, graphs)
