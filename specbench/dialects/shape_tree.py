"""Which of the known shapes many lines have: those that begin alike go side by side, from number to number of any width."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specbench.dialects.numbers import (
    MOST_VALUE_DIGITS,
    WORD_BYTES,
    Bytes,
    Floats,
    Places,
    Words,
    digits_of,
    items,
    more_digits,
    values_of,
)
from specbench.dialects.shapes import LONGEST_BYTES, MASK, Shape

BEHIND_BYTES: Final = LONGEST_BYTES + 2 * WORD_BYTES
"""So far behind the end of a line may be looked."""
FOLD: Final = 16
MASKED: Final = np.frombuffer(MASK, np.uint8)


class Match(NamedTuple):
    """Lines of one shape."""

    shape: int
    """Its place among the shapes."""
    lines: Places
    """Their places in the block, rising."""
    values: list[Floats]
    """By `Shape.columns`."""


class _Walk(NamedTuple):
    """Lines on their way through the tree."""

    lines: Places
    places: Places
    """How far each was read."""
    found: dict[int, Floats]
    """Numbers that count, by run."""

    def part(self, which: Places) -> "_Walk":
        return _Walk(self.lines[which], self.places[which], {run: values[which] for run, values in self.found.items()})


class _Stretch:
    """Text of a fixed length; behind it comes a number of any width, the line's end, or anything at all."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.shape: int | None = None
        """Whose end it is."""
        self.number: int | None = None
        """The run behind it, if that counts."""
        self.most_digits = 0
        """Of it."""
        self.runs: dict[int, tuple[int, int]] = {}
        """Numbers inside that count, by run: where they begin and end."""
        self.then: dict[bytes, _Stretch] = {}
        self.choice: _Stretch | _Choice | None = None
        """Among those."""
        self._is_finished = False

    def _finish(self) -> None:
        """Once everything is in it, and only when a line comes: most trees are asked about few of their shapes."""
        self._is_finished = True
        self._word_index, odd_bytes = divmod(len(self.text) - 1, WORD_BYTES)
        self._odd_bits = np.uint64(8 * odd_bytes)
        self._size_bytes = len(self.text) if self.shape is not None else (self._word_index + 2) * WORD_BYTES
        rest = self._size_bytes - len(self.text)
        self._least = np.frombuffer(self.text + bytes(rest), np.uint8)
        self._most = np.frombuffer(self.text.replace(b"0", b"9") + b"\xff" * rest, np.uint8)
        self._places = [place for run in self.runs.values() for place in range(*run)]
        self._weights = np.zeros((len(self.runs), len(self._places)))
        end = 0
        for row, (first, behind) in enumerate(self.runs.values()):
            end += behind - first
            self._weights[row, end - (behind - first) : end] = 10.0 ** np.arange(behind - first - 1, -1, -1)
        self._zeros = ord("0") * self._weights.sum(axis=1, keepdims=True)
        self.choice = _choice(list(self.then.values()))

    def read(self, text: Bytes, walk: _Walk) -> _Walk:
        """Those of the lines that go on like this, with its numbers and past the one behind it."""
        if not self._is_finished:
            self._finish()
        rows = items(text, self._size_bytes)[walk.places].view(np.uint8).reshape(len(walk.lines), self._size_bytes)
        if not self._fits(rows):
            which = np.flatnonzero(((rows >= self._least) & (rows <= self._most)).all(axis=1))
            rows, walk = rows[which], walk.part(which)
        if self.runs:
            values = self._weights @ rows.T[self._places].astype(np.float64) - self._zeros
            walk.found.update(zip(self.runs, values, strict=True))
        return walk if self.shape is not None else self._past_number(text, walk, self._words(rows))

    def _fits(self, rows: Bytes) -> bool:
        least, most = _over_rows(np.minimum, rows), _over_rows(np.maximum, rows)
        return bool((least >= self._least).all() and (most <= self._most).all())

    def _words(self, rows: Bytes) -> Words:
        """What begins at the last byte of the text: the first digit of the number behind it."""
        columns = rows.view("<u8")
        words: Words = columns[:, self._word_index] >> self._odd_bits
        return words | columns[:, self._word_index + 1] << np.uint64(64) - self._odd_bits if self._odd_bits else words

    def _past_number(self, text: Bytes, walk: _Walk, words: Words) -> _Walk:
        places = walk.places + (len(self.text) - 1)
        digits, widths = digits_of(words)
        more_digits(text, places, widths)
        walk = walk._replace(places=places + widths)
        most_digits = self.most_digits if self.number is None else min(self.most_digits, MOST_VALUE_DIGITS)
        if widths.max(initial=0) > most_digits:
            which = np.flatnonzero(widths <= most_digits)
            walk, digits, widths = walk.part(which), digits[which], widths[which]
        if self.number is not None:
            walk.found[self.number] = values_of(digits, widths)
        return walk


class _Choice(NamedTuple):
    """Between texts that differ first at this byte."""

    column: int
    ways: "dict[int, _Choice | _Stretch]"


class ShapeTree:
    """Shapes by how their lines begin."""

    def __init__(self, shapes: Sequence[Shape], varying: Mapping[bytes, int]) -> None:
        """`varying`: a number with this text before it, each number in it made a 0, may have so many digits or fewer."""
        self._shapes = shapes
        first: dict[bytes, _Stretch] = {}
        for place, shape in enumerate(shapes):
            _grow(first, place, shape, varying)
        self._first = _choice(list(first.values()))

    def match(self, text: Bytes, starts: NDArray[np.int32], lines: Places) -> Iterator[Match]:
        """Those of the lines whose shape is known. `BEHIND_BYTES` must follow each of them in the text."""
        return self._walk(self._first, text, _Walk(lines, starts[lines].astype(np.intp), {}))

    def _walk(self, choice: _Choice | _Stretch | None, text: Bytes, walk: _Walk) -> Iterator[Match]:
        for stretch, before in _ways(choice, text, walk):
            after = stretch.read(text, before)
            if not len(after.lines):
                continue
            if stretch.shape is None:
                yield from self._walk(stretch.choice, text, after)
            else:
                columns = self._shapes[stretch.shape].columns
                yield Match(stretch.shape, after.lines, [column.value(after.found) for column in columns])


def _grow(first: dict[bytes, _Stretch], place: int, shape: Shape, varying: Mapping[bytes, int]) -> None:
    """Adds a shape to the tree."""
    counted = shape.counted
    begun, runs, ways = b"", dict[int, tuple[int, int]](), first

    def add(text: bytes) -> _Stretch:
        if text not in ways:
            ways[text] = _Stretch(text)
        ways[text].runs.update(runs)
        return ways[text]

    for run, (before, width, prefix) in enumerate(zip(shape.texts, shape.digit_count, shape.prefixes, strict=False)):
        begun += before
        if prefix in varying:
            stretch = add(begun + b"0")
            stretch.number = run if run in counted else stretch.number
            stretch.most_digits = varying[prefix]
            begun, runs, ways = b"", {}, stretch.then
        else:
            if run in counted:
                runs[run] = (len(begun), len(begun) + width)
            begun += b"0" * width
    add(begun + shape.texts[-1]).shape = place


def _choice(stretches: list[_Stretch]) -> _Choice | _Stretch | None:
    if len(stretches) < 2:
        return stretches[0] if stretches else None
    texts = [one.text for one in stretches]
    column = next((at for at in range(min(map(len, texts))) if len({text[at] for text in texts}) > 1), None)
    if column is None:  # one is the beginning of all: what it stands for is known without the rest
        return min(stretches, key=lambda one: len(one.text))
    ways = {byte: [one for one in stretches if one.text[column] == byte] for byte in {text[column] for text in texts}}
    return _Choice(column, {byte: found for byte, ones in ways.items() if (found := _choice(ones)) is not None})


def _ways(choice: _Choice | _Stretch | None, text: Bytes, walk: _Walk) -> Iterator[tuple[_Stretch, _Walk]]:
    """Each stretch with the lines that can have no other."""
    if not len(walk.lines):
        return
    if isinstance(choice, _Stretch):
        yield choice, walk
    elif choice is not None:
        found = MASKED.take(text.take(walk.places + choice.column))
        for byte, then in choice.ways.items():
            which = np.flatnonzero(found == byte)
            if len(which):
                yield from _ways(then, text, walk.part(which) if len(which) < len(found) else walk)


def _over_rows(reduced: np.ufunc, rows: Bytes) -> Bytes:
    """By column. Numpy goes row by row, so that a few long rows cost less than many short ones."""
    even_count, width = len(rows) // FOLD * FOLD, rows.shape[1]
    folded = reduced.reduce(rows[:even_count].reshape(-1, FOLD * width), axis=0) if even_count else rows[:0]
    columns: Bytes = reduced.reduce(np.concatenate((folded.reshape(-1, width), rows[even_count:])), axis=0)
    return columns
