"""Which of the known shapes many lines have: lines of one length side by side, told apart by a few bytes, proved by all."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specbench.dialects.shapes import LONGEST_BYTES, MASK, Shape

WEIGHTS: Final = (np.arange(1, LONGEST_BYTES + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
MASKED: Final = np.frombuffer(MASK, np.uint8).astype(np.uint64)

Bytes = NDArray[np.uint8]


class Match(NamedTuple):
    """Lines of one shape."""

    shape: int
    """Its place in `ShapeIndex.shapes`."""
    lines: NDArray[np.intp]
    """Their places in the block, rising."""
    values: NDArray[np.float64]
    """(`Shape.columns`, lines)"""


class _Length:
    """The shapes of one length, and at which bytes they differ."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.patterns: dict[int, bytes] = {}
        """Digits masked, by the shape's place."""
        self.keys: dict[int, int] = {}
        """Of each of them."""

    def add(self, place: int, pattern: bytes) -> None:
        """Another shape. One more column tells it from the only one that it can share its key with."""
        self.patterns[place] = pattern
        own = self._key(pattern)
        for other, key in self.keys.items():
            if key == own:
                there = self.patterns[other]
                self.columns.append(next(at for at in range(len(pattern)) if pattern[at] != there[at]))
        self.keys = {one: self._key(text) for one, text in self.patterns.items()}

    def _key(self, pattern: bytes) -> int:
        return int(self.keys_of(np.frombuffer(pattern, np.uint8), np.zeros(1, np.int32))[0])

    def keys_of(self, text: Bytes, starts: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Of the lines that start there: equal for all lines of a shape."""
        found: Bytes = text.take(starts[:, None] + np.array(self.columns, np.intp))
        keys: NDArray[np.uint64] = MASKED.take(found) @ WEIGHTS[: len(self.columns)]
        return keys


class ShapeIndex:
    """Shapes in the order in which they were learned."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self.places: dict[bytes, int] = {}
        """By the line with its digits masked."""
        self._by_length: dict[int, _Length] = {}

    def add(self, shape: Shape) -> None:
        """A shape that is not in it yet."""
        place = self.places[shape.pattern] = len(self.shapes)
        self.shapes.append(shape)
        self._by_length.setdefault(len(shape.pattern), _Length()).add(place, shape.pattern)

    def match(self, text: Bytes, starts: NDArray[np.int32], lines: NDArray[np.intp]) -> Iterator[Match]:
        """Those of the lines whose shape is known. `starts` has one more: where the next line would begin."""
        lengths = np.minimum(starts[lines + 1] - starts[lines] - 1, LONGEST_BYTES + 1)
        order = lines[np.argsort(lengths.astype(np.int16), kind="stable")]
        ends = np.cumsum(np.bincount(lengths, minlength=LONGEST_BYTES + 2)).tolist()
        for length, known in self._by_length.items():
            alike = order[ends[length - 1] if length else 0 : ends[length]]
            if not len(alike):
                continue
            keys = known.keys_of(text, starts[alike])
            for place, key in known.keys.items():
                own = alike[keys == key]
                if len(own):
                    yield self.match_one(place, text, starts, own)

    def match_one(self, place: int, text: Bytes, starts: NDArray[np.int32], lines: NDArray[np.intp]) -> Match:
        """Those of the lines, all as long as this shape, that have it."""
        shape = self.shapes[place]
        length = len(shape.pattern)
        every = np.ndarray((len(text) - length + 1,), f"V{length}", text, strides=(1,))  # type: ignore[call-overload]
        rows = every[starts[lines]].view(np.uint8).reshape(len(lines), length)
        if not shape.fits(rows):
            whole = shape.fitting(rows)
            rows, lines = rows[whole], lines[whole]
        return Match(place, lines, shape.values(rows))
