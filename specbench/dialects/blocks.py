"""Many lines of a log at once: those whose shape is known by numpy, the others one by one through the grammar."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import LogLine
from specbench.dialects.shapes import COLUMN_COUNT, LONGEST_BYTES, Shape, learn

SLACK_BYTES: Final = LONGEST_BYTES + 8
FIRST_PORTION: Final = 32
"""Lines read through the grammar before what was learned from them is tried on the rest."""
PIECE_LINES: Final = 2048
"""Lines compared at once: what they need stays in the processor's cache."""
BEYOND_ASCII: Final = np.uint64(0x8080808080808080)
MOST_SHAPES: Final = 1024
MOST_SEEN: Final = 4096
READ_BYTES: Final = 16_384
"""So much of a line is read: no line of a server's own is as long."""
MASK: Final = bytes(ord("0") if chr(code).isascii() and chr(code).isdigit() else code for code in range(256))


class Block(NamedTuple):
    """Whole lines, each read. Arrays have a place a line."""

    text: memoryview
    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    """Without the line break."""
    shape_index: NDArray[np.int16]
    """Into `shapes`; -1 for a line that is in `slow`."""
    shapes: list[Shape]
    columns: NDArray[np.float64]
    """(`COLUMN_COUNT`, lines), see `shapes`; NaN where a line has no such number."""
    counts: dict[str, int]
    """Lines by kind of the grammar, those in `slow` left out."""
    slow: list[tuple[int, LogLine]]

    def line(self, index: int) -> bytes:
        """Its bytes, without the line break."""
        return bytes(self.text[self.starts[index] : self.ends[index]])

    def of_kind(self, kind: str) -> NDArray[np.bool_]:
        """Which lines numpy read as decode lines, or as prefill lines."""
        by_shape = [shape.line.kind == kind and shape.ts is not None for shape in self.shapes]
        return np.array([*by_shape, False])[self.shape_index]

    def graphs(self, places: NDArray[np.intp]) -> NDArray[np.int8]:
        """1, 0, or -1 where a line does not say."""
        said = [shape.line.sample.cuda_graph if shape.line.sample is not None else None for shape in self.shapes]
        by_shape = np.array([*(-1 if one is None else int(one) for one in said), -1], np.int8)
        return by_shape[self.shape_index[places]]

    def column(self, number: int, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """One of them at some lines."""
        if not any(number in shape.columns for shape in self.shapes):
            return np.full(len(places), np.nan)
        values: NDArray[np.float64] = self.columns[number][places]
        return values

    def ts(self, index: int) -> str:
        """The clock of a decode line that numpy read."""
        place = self.shapes[self.shape_index[index]].ts
        assert place is not None
        return self.line(index)[slice(*place)].decode()


class BlockReader:
    """Learns shapes while the blocks go by."""

    def __init__(self, parse_line: Callable[[str], LogLine], *, learns: bool = True) -> None:
        self._parse_line = parse_line
        self._learns = learns
        """False for a grammar that remembers lines: it must be shown each of them."""
        self._shapes: dict[int, list[tuple[int, Shape]]] = {}
        """By length in bytes: index and shape, the one that fitted last in front."""
        self._all: list[Shape] = []
        self._seen: dict[bytes, bool] = {}
        """Digits masked; True once it can't be learned."""
        words = (PIECE_LINES, LONGEST_BYTES // 8)
        self._scratch = [np.zeros(words[0] * words[1], np.uint64) for _ in range(2)] if learns else []

    def read(self, text: memoryview, size_bytes: int) -> Block:
        """The first `size_bytes` end with a line break, or are the log's end; `SLACK_BYTES` or more stand behind them."""
        block = _cut(text, size_bytes, self._all)
        left = self._unmatched(block, np.arange(len(block.starts)))
        portion_count = FIRST_PORTION
        while len(left):
            known_count = len(self._all)
            for index in left[:portion_count].tolist():
                block.slow.append((index, self._read_slowly(block.line(index))))
            left = left[portion_count:]
            portion_count *= 2
            if len(self._all) > known_count:
                left, portion_count = self._unmatched(block, left), FIRST_PORTION
        return block

    def _read_slowly(self, raw: bytes) -> LogLine:
        line = self._parse_line(raw[:READ_BYTES].decode("utf-8", "replace"))
        if self._learns and len(raw) <= LONGEST_BYTES and len(self._all) < MOST_SHAPES:
            masked = raw.translate(MASK)
            seen = self._seen.get(masked)
            if seen is False:
                self._learn(raw)
            if seen is not True:
                self._seen[masked] = seen is False
            if len(self._seen) > MOST_SEEN:
                self._seen.clear()
        return line

    def _learn(self, raw: bytes) -> None:
        shape = learn(raw, self._parse_line)
        if shape is not None:
            self._shapes.setdefault(shape.length_bytes, []).append((len(self._all), shape))
            self._all.append(shape)

    def _unmatched(self, block: Block, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        """Fills in lines whose shape is known; gives the others, in order."""
        if not self._shapes or not len(indices):
            return indices
        lengths = np.minimum(block.ends[indices] - block.starts[indices], LONGEST_BYTES + 1).astype(np.uint16)
        order = np.argsort(lengths, kind="stable")
        lengths = lengths[order]
        left = [indices[:0]]
        for group in np.split(order, np.flatnonzero(np.diff(lengths)) + 1):
            shapes = self._shapes.get(int(block.ends[indices[group[0]]] - block.starts[indices[group[0]]]))
            if shapes is None:
                left.append(indices[group])
                continue
            for start in range(0, len(group), PIECE_LINES):
                left.append(self._match(block, indices[group[start : start + PIECE_LINES]], shapes))
        return np.sort(np.concatenate(left))

    def _match(self, block: Block, indices: NDArray[np.intp], shapes: list[tuple[int, Shape]]) -> NDArray[np.intp]:
        """Lines of one length; gives those that fit no shape."""
        rows = self._gather(block, indices, len(shapes[0][1].expected))
        for place, (shape_index, shape) in enumerate(shapes):
            if not len(indices):
                break
            misfits = self._misfits(rows, shape)
            if misfits is None:
                _fill(block, indices, rows, shape_index, shape)
                shapes.insert(0, shapes.pop(place))
                return indices[:0]
            if not misfits.all():
                _fill(block, indices[~misfits], rows[~misfits], shape_index, shape)
                indices, rows = indices[misfits], rows[misfits]
        return indices

    def _gather(self, block: Block, indices: NDArray[np.intp], word_count: int) -> NDArray[np.uint8]:
        """(lines, bytes), each from its start, with what stands behind it up to a whole word."""
        everywhere = np.lib.stride_tricks.sliding_window_view(np.frombuffer(block.text, np.uint8), 8 * word_count)
        rows: NDArray[np.uint8] = everywhere[block.starts[indices]]
        return rows

    def _misfits(self, rows: NDArray[np.uint8], shape: Shape) -> NDArray[np.bool_] | None:
        """Which lines do not fit; None when all do."""
        words = rows.view(np.uint64)
        differ, carried = (one[: words.size].reshape(words.shape) for one in self._scratch)
        np.bitwise_xor(words, shape.expected, out=differ)
        np.add(differ, shape.carry, out=carried)
        if np.bitwise_or.reduce(words.reshape(-1)) & BEYOND_ASCII:  # else no digit's byte is carried into the next
            np.bitwise_or(differ, carried, out=carried)
        np.bitwise_and(carried, shape.mask, out=carried)
        flat = carried.reshape(-1)
        if not np.bitwise_or.reduce(flat):
            return None
        misfits: NDArray[np.bool_] = np.bitwise_or.reduceat(flat, np.arange(0, flat.size, words.shape[1])) != 0
        return misfits


def _cut(text: memoryview, size_bytes: int, shapes: list[Shape]) -> Block:
    line_ends = np.flatnonzero(np.frombuffer(text, np.uint8, size_bytes) == ord("\n"))
    if size_bytes and text[size_bytes - 1] != ord("\n"):
        line_ends = np.append(line_ends, size_bytes)
    starts = np.zeros_like(line_ends)
    starts[1:] = line_ends[:-1] + 1
    count = len(starts)
    return Block(
        text=text,
        starts=starts,
        ends=line_ends,
        shape_index=np.full(count, -1, np.int16),
        shapes=shapes,
        columns=np.full((COLUMN_COUNT, count), np.nan),
        counts={},
        slow=[],
    )


def _fill(block: Block, indices: NDArray[np.intp], rows: NDArray[np.uint8], shape_index: int, shape: Shape) -> None:
    """Enters lines that fit."""
    block.shape_index[indices] = shape_index
    block.counts[shape.line.kind] = block.counts.get(shape.line.kind, 0) + len(indices)
    if len(shape.columns):
        for column, values in zip(shape.columns, shape.values(rows).T, strict=True):
            block.columns[column, indices] = values
