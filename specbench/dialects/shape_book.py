"""Learns shapes. One is believed only when the grammar reads the line, with other numbers put in, as the shape predicts."""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import LogLine
from specbench.dialects.numbers import MOST_DIGITS, MOST_VALUE_DIGITS, Bytes, Places, line_starts
from specbench.dialects.shape_tree import BEHIND_BYTES, Match, ShapeTree
from specbench.dialects.shapes import (
    COLUMN_COUNT,
    DIGITS,
    LONGEST_BYTES,
    RUN,
    Shape,
    carries_nothing,
    columns_of,
    graph_of,
    has_figures,
    shape_of,
    texts_of,
)

MOST_SHAPES: Final = 256
MOST_SEEN: Final = 4096
MOST_EMPTY: Final = 192
"""Shapes there may be when one without figures is learned: the rest is kept for those that have some."""
CHATTER_LINES: Final = 64
"""After so many of a kind that nothing is known of they are worth a shape."""
MOST_CHATTER: Final = 128
"""Shapes there may be when such a one is learned."""
SUBSTITUTES: Final = (b"0000000000", b"9999999999", b"3690258147")
"""What each digit becomes in a probe."""
MOST_WIDTHS: Final = (MOST_DIGITS, MOST_VALUE_DIGITS, 6, 4, 2)
"""Tried for a number that was seen in two widths."""
MIXED_PROBES: Final = 6
TOLD_NUMBERS: Final = (b"1", b"28", b"98", b"401")
"""Numbers that the grammar spells out: `[Errno 98]` is a fault where `[Errno 11]` is none."""
FREE_WORK: Final = 12_000
"""So many looks and probes cost less than what they may save."""
WORK_FOR_SLOW: Final = 4
"""So many lines read one by one pay for another look; so does each line that was read by a shape."""
TAILS: Final = (
    b"",
    b" ",
    b"7",
    b"GenerateReqInput(rid='0a1', text='hello, 42'), \x1b[0m",
    b"\xff\xfe",
    b"[2026-11-01 10:00:00 TP0] Decode batch. #running-req: 1, #token: 9, gen throughput (token/s): 8.00, #queue-req: 0",
    b"Decode batch. #running-req: 1, #token: 9, accept len: 2.00, gen throughput (token/s): 8.00, #queue-req: 0, ",
    b'{"text": "a", "log": "b"}',
)
"""What may follow where anything may."""


class ShapeBook:
    """The shapes of a log, learned while it goes by."""

    def __init__(self, parse_line: Callable[[str], LogLine]) -> None:
        self._parse_line = parse_line
        self.shapes: list[Shape] = []
        self._places: dict[bytes, int] = {}
        self._varying: dict[bytes, int] = {}
        """What stands before numbers of several widths, and how many digits these may have."""
        self._rigid: set[bytes] = set()
        """Before numbers for which that can't be proved."""
        self._tree: ShapeTree | None = None
        """None: not yet made of what is known."""
        self._work_left = dict.fromkeys((False, True), float(FREE_WORK))
        """For lines without figures, and with: much talk leaves enough for those that count."""
        self._counts = False
        """Whether the line that is looked at has figures."""
        self._seen: dict[bytes, int] = {}
        """Lines by name."""

    def match(self, text: Bytes, starts: NDArray[np.int32], lines: Places) -> list[Match]:
        """See `ShapeTree.match`."""
        if self._tree is None:
            self._tree = ShapeTree(self.shapes, self._varying)
        found = list(self._tree.match(text, starts, lines))
        for one in found:
            self._earn(has_figures(self.shapes[one.shape].line), len(one.lines))
        if any(self.shapes[one.shape].is_open for one in found):
            returning = np.searchsorted(starts, np.flatnonzero(text[: starts[-1]] == ord("\r")), "right") - 1
            found = [self._without(one, returning) for one in found]
        return found

    def _without(self, match: Match, returning: Places) -> Match:
        """What stands behind a carriage return counts instead of what stands before it."""
        if not (len(returning) and self.shapes[match.shape].is_open):
            return match
        return match._replace(lines=np.setdiff1d(match.lines, returning, assume_unique=True))

    def look(self, raw: bytes, read: LogLine) -> bool:
        """Looks at a line that was read one by one; what comes again is learned. Whether anything was. A log that is like
        nothing before, line by line, is looked at ever more rarely."""
        self._counts = has_figures(read)
        self._earn(self._counts, 1 / WORK_FOR_SLOW)
        if self._work_left[self._counts] < 1:
            return False
        self._work_left[self._counts] -= 1
        is_echo = read.name == "request_echo"
        if not (self._counts or carries_nothing(read)) or (len(raw) > LONGEST_BYTES and not is_echo):
            return False
        shape = shape_of(raw, read) if is_echo else None
        name = self._name(shape.texts, shape.digit_count) if shape is not None else self._name(*texts_of(raw + b"\n"))
        count = self._seen[name] = self._seen.get(name, 0) + 1
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()
        if name in self._places:
            return self._widen(self.shapes[self._places[name]], raw)
        wanted, most = _worth(read)
        if count != wanted or len(self.shapes) >= most:
            return False
        shape = shape or shape_of(raw, read)
        return shape is not None and self._add(shape)

    def _earn(self, counts: bool, work: float) -> None:
        self._work_left[counts] = min(FREE_WORK, self._work_left[counts] + work)

    def _name(self, texts: Sequence[bytes], counts: Sequence[int]) -> bytes:
        """A line, each number in it made a 0, or as many as it has digits where that can't vary."""
        prefix = name = b""
        for text, count in zip(texts[:-1], counts, strict=True):
            prefix, name = prefix + text, name + text
            prefix, name = prefix + b"0", name + b"0" * (count if prefix in self._rigid else 1)
        return name + texts[-1]

    def _add(self, shape: Shape) -> bool:
        new = self._varying.keys() & set(shape.prefixes)
        learned = self._try([*self.shapes, shape], self._varying, [shape], new)
        if learned:
            self._places[self._name(shape.texts, shape.digit_count)] = len(self.shapes) - 1
        return learned

    def _widen(self, known: Shape, raw: bytes) -> bool:
        """The same numbers, some of other widths."""
        counts = [len(run) for run in RUN.findall(raw)]
        others = {
            prefix: max(own, count)
            for prefix, own, count in zip(known.prefixes, known.digit_count, counts, strict=False)
            if own != count
        }
        learned = False
        new = others.keys() - self._varying.keys() - self._rigid - known.rigid
        if len(new) > 1 and self._vary(new, MOST_DIGITS):
            return True
        for prefix in sorted(others.keys() - self._varying.keys() - self._rigid):
            tried = (most for most in MOST_WIDTHS if most >= others[prefix] and prefix not in known.rigid)
            if any(self._vary({prefix}, most) for most in tried):
                learned = True
            else:
                self._rigid.add(prefix)
                self._places = {self._name(one.texts, one.digit_count): at for at, one in enumerate(self.shapes)}
        return learned

    def _vary(self, prefixes: Collection[bytes], most_digits: int) -> bool:
        """Lets numbers with this before them have so many digits, if that can be proved."""
        touched = [one for one in self.shapes if any(prefix in prefixes for prefix in one.prefixes)]
        varying = {**self._varying, **dict.fromkeys(prefixes, most_digits)}
        return self._try(self.shapes, varying, touched, prefixes)

    def _try(self, shapes: list[Shape], varying: dict[bytes, int], touched: list[Shape], new: Collection[bytes]) -> bool:
        """Takes all this over if it can be proved. What is not touched was proved before."""
        tree = ShapeTree(touched, varying)
        if not all(self._proves(tree, touched, _probes(one, varying, new), one.is_open) for one in touched):
            return False
        self.shapes, self._varying, self._tree = shapes, varying, None
        return True

    def _proves(self, tree: ShapeTree, shapes: Sequence[Shape], probes: Iterable[bytes], is_open: bool) -> bool:
        """Whether the grammar reads every probe as the tree does, and the tree reads the first, a line of the log."""
        lines = [probe.rstrip(b"\n") + tail for probe in probes for tail in (TAILS if is_open else (b"",))]
        self._work_left[self._counts] -= len(lines)
        text = np.frombuffer(b"".join(line + b"\n" for line in lines) + bytes(BEHIND_BYTES), np.uint8)
        starts = line_starts(text[:-BEHIND_BYTES])
        first_is_read = False
        for match in tree.match(text, starts, np.arange(len(lines))):
            first_is_read = first_is_read or match.lines[0] == 0
            for place, line in enumerate(match.lines.tolist()):
                values = [float(column[place]) for column in match.values]
                if not self._agrees(shapes[match.shape], lines[line], values):
                    return False
        return first_is_read

    def _agrees(self, shape: Shape, line: bytes, values: list[float]) -> bool:
        read = self._parse_line(line.decode("utf-8", "replace"))
        if (read.kind, read.name, read.also) != (shape.line.kind, shape.line.name, ()):
            return False
        if not has_figures(shape.line):
            return carries_nothing(read)
        slot = shape.stamp.slot(line) if shape.stamp is not None else None
        if slot is None or read.ts != line[slice(*slot)].decode():
            return False
        found = np.full(COLUMN_COUNT, np.nan)
        found[[column.number for column in shape.columns]] = values
        return np.array_equal(found, columns_of(read), equal_nan=True) and graph_of(read) == graph_of(shape.line)


def _worth(read: LogLine) -> tuple[int, int]:
    """How often such a line must come to be learned, and how many shapes there may be by then."""
    if has_figures(read):
        return 2, MOST_SHAPES
    return (2, MOST_EMPTY) if read.name else (CHATTER_LINES, MOST_CHATTER)


def _probes(shape: Shape, varying: Mapping[bytes, int], new: Collection[bytes]) -> Iterator[bytes]:
    """The line, with other digits, and with other widths where these vary: the new ones one at a time, then all at once."""
    yield shape.raw
    for digits in SUBSTITUTES:
        yield shape.raw.translate(bytes.maketrans(DIGITS, digits))
    vary = {run: varying[prefix] for run, prefix in enumerate(shape.prefixes) if prefix in varying}
    rng, widths = random.Random(len(vary)), range(1, MOST_DIGITS + 1)
    changes = [{run: width} for run in vary if shape.prefixes[run] in new for width in widths]
    changes += [{run: min(width, most) for run, most in vary.items()} for width in widths if vary]
    changes += [{run: rng.randint(1, most) for run, most in vary.items()} for _ in range(MIXED_PROBES) if vary]
    yield from _telling(shape, vary)
    for change in changes:
        counts = (change.get(run, width) for run, width in enumerate(shape.digit_count))
        runs = [b"%d" % rng.randrange(10**count // 9, 10**count) for count in counts]  # none is 0: that hides its width
        yield b"".join(part for pair in zip(shape.texts, [*runs, b""], strict=True) for part in pair)


def _telling(shape: Shape, vary: Mapping[int, int]) -> Iterator[bytes]:
    """The line with each number that the grammar spells out, at each place where it may stand."""
    if has_figures(shape.line):
        return
    runs = RUN.findall(shape.raw)
    for number in TOLD_NUMBERS:
        for run, count in enumerate(shape.digit_count):
            if len(number) == count or len(number) <= vary.get(run, 0):
                told = [*runs[:run], number, *runs[run + 1 :], b""]
                yield b"".join(part for pair in zip(shape.texts, told, strict=True) for part in pair)
