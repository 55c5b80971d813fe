"""Shapes of log lines: all lines of one shape differ in their digits alone, so that numpy reads thousands at once."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import accumulate, islice
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from specbench.dialects import LogLine
from specbench.dialects.detect import writer_of_figures
from specbench.dialects.numbers import Floats
from specbench.dialects.sglang_log import ECHO, NAMES

LONGEST_BYTES: Final = 512
"""Longer lines have no shape: they hold somebody's text."""
DIGITS: Final = b"0123456789"
MASK: Final = bytes.maketrans(DIGITS, b"0" * len(DIGITS))
RUN: Final = re.compile(rb"\d+")
SKIPPED: Final = ("access", "blank", "progress", "request_echo")
"""Lines that carry nothing whatever their digits are."""
BEFORE_TEXT: Final = re.compile(rb"['\"=({\[]")
"""What no collector writes before a line, see `lines.ANY_PREFIX`."""
BETWEEN_QUOTES: Final = re.compile(r'["\\]')
"""Marks that JSON writes with another before them."""
RANKS: Final = ("dp", "pp", "tp")
DECODE_COLUMNS: Final = ("running_requests", "accept_length", "accept_rate", "gen_throughput_tps")
PREFILL_COLUMNS: Final = ("running_requests", "cached_tokens", "new_tokens")
COLUMN_COUNT: Final = len(DECODE_COLUMNS) + len(RANKS)
VALUE: Final = rb": (\d{1,9}(?:\.\d{1,4})?)(?=,|$|\s)"
"""13 digits at most: products stay whole numbers in a double."""


class Stamp(NamedTuple):
    """Where a clock stands, told by the numbers of the line: by their count, and by bytes from there."""

    first_run: int
    before_bytes: int
    last_run: int
    after_bytes: int

    def slot(self, line: bytes) -> tuple[int, int] | None:
        """Where it begins and ends in a line that has the shape. None: the file was changed since it was read."""
        runs = [found.span() for found in islice(RUN.finditer(line), self.last_run + 1)]
        if len(runs) <= self.last_run:
            return None
        return runs[self.first_run][0] - self.before_bytes, runs[self.last_run][1] + self.after_bytes


class Column(NamedTuple):
    """A number of the line that counts."""

    number: int
    """Among `DECODE_COLUMNS` or `PREFILL_COLUMNS`, and `RANKS`."""
    whole: int
    """The run of its digits before the point."""
    decimals: int | None
    """The run behind it."""
    scale: float

    def value(self, found: Mapping[int, Floats]) -> Floats:
        """Exact to the last digit."""
        whole = found[self.whole]
        return whole if self.decimals is None else (whole * self.scale + found[self.decimals]) / self.scale


class Shape(Struct, frozen=True, dict=True):
    """What is known of every line that has it."""

    line: LogLine
    """The one it was learned from: kind, name and CUDA graph are the same in all."""
    raw: bytes
    """As it stood in the log."""
    texts: tuple[bytes, ...]
    """Before, between and behind the runs of digits, with the line's end; without it, anything may follow."""
    digit_count: tuple[int, ...]
    """Of each run in this line."""
    stamp: Stamp | None
    columns: tuple[Column, ...]
    """Those that are printed, by number."""

    @cached_property
    def prefixes(self) -> tuple[bytes, ...]:
        """What stands before each run, each number in it made a 0."""
        return tuple(accumulate(self.texts[:-1], lambda before, text: before + b"0" + text))

    @property
    def is_open(self) -> bool:
        """Whether anything may follow."""
        return not self.texts[-1].endswith(b"\n")

    @property
    def rigid(self) -> set[bytes]:
        """What stands before numbers whose width says what they are worth."""
        return {self.prefixes[one.decimals] for one in self.columns if one.decimals is not None}

    @property
    def counted(self) -> set[int]:
        """Runs that are part of a column."""
        return {run for one in self.columns for run in (one.whole, one.decimals) if run is not None}


def carries_nothing(read: LogLine) -> bool:
    """Whether a line is only counted."""
    if read.name:
        return read.name in SKIPPED
    return read.kind in ("known", "noise") and not (read.also or read.value or writer_of_figures(read.text))


def has_figures(read: LogLine) -> bool:
    """Whether its numbers count."""
    return read.kind in ("decode", "prefill") and not read.also


def texts_of(raw: bytes) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    """The texts around the runs of digits, and how long these are."""
    return tuple(RUN.split(raw)), tuple(len(run) for run in RUN.findall(raw))


def shape_of(raw: bytes, read: LogLine) -> Shape | None:
    """The shape of this line, as its reading suggests; None when it holds more than its digits."""
    if read.name == "request_echo":
        return _echo(raw, read)
    if len(raw) > LONGEST_BYTES or not raw.isascii() or not _stands_there(raw, read):
        return None
    if not has_figures(read):
        return _shape(raw + b"\n", read, None, ()) if carries_nothing(read) else None
    starts = {found.start(): place for place, found in enumerate(RUN.finditer(raw))}
    return _shape(raw + b"\n", read, _stamp(raw, read, starts), tuple(sorted(_columns(raw, read, starts))))


def _stands_there(raw: bytes, read: LogLine) -> bool:
    """Whether the text that was read is in the line: JSON may tell it by numbers, or be none with others."""
    pieces = BETWEEN_QUOTES.split(read.text)
    is_told = bool(read.text) and read.text[0] != "{"
    return all(piece.encode() in raw for piece in pieces) and (is_told or raw[:1] != b"{")


def _shape(raw: bytes, read: LogLine, stamp: Stamp | None, columns: tuple[Column, ...]) -> Shape:
    texts, counts = texts_of(raw)
    return Shape(line=read, raw=raw, texts=texts, digit_count=counts, stamp=stamp, columns=columns)


def _echo(raw: bytes, read: LogLine) -> Shape | None:
    """Somebody's text may follow; whatever it is, the line is an echo."""
    begin, found = raw.find(read.text[:8].encode()), ECHO.match(read.text)
    mark = BEFORE_TEXT.search(raw, begin + found.end() - 1) if found is not None and begin >= 0 else None
    if mark is None or mark.end() > LONGEST_BYTES or not raw[: mark.end()].isascii():
        return None
    return _shape(raw[: mark.end()], read, None, ())


def columns_of(line: LogLine) -> Floats:
    """The columns as the grammar reads them."""
    if line.sample is not None:
        values = [getattr(line.sample, name) for name in DECODE_COLUMNS]
    else:
        counts = (line.value.get(name) for name in PREFILL_COLUMNS)
        values = [*(one if isinstance(one, int) and not isinstance(one, bool) else None for one in counts), None]
    values += [(line.rank or {}).get(name) for name in RANKS]
    return np.array([np.nan if value is None else value for value in values], np.float64)


def graph_of(line: LogLine) -> bool | None:
    """Whether a decode line ran in a CUDA graph; None where it does not say."""
    return line.sample.cuda_graph if line.sample is not None else None


def _stamp(raw: bytes, read: LogLine, starts: Mapping[int, int]) -> Stamp | None:
    """None without a clock."""
    begin = raw.rfind(read.ts.encode()) if read.ts else -1
    if not read.ts or begin < 0:
        return None
    end = begin + len(read.ts)
    inside = [(start, run) for start, run in starts.items() if begin <= start < end]
    if not inside:
        return None
    (first_start, first_run), (last_start, last_run) = inside[0], inside[-1]
    last = RUN.match(raw, last_start)
    assert last is not None
    return Stamp(first_run, first_start - begin, last_run, end - last.end())


def _columns(raw: bytes, read: LogLine, starts: Mapping[int, int]) -> Iterator[Column]:
    """Each number that counts."""
    names = DECODE_COLUMNS if read.sample is not None else PREFILL_COLUMNS
    for key, name in NAMES.items():
        if name in names and (found := re.search(rb"(?<![\w#])" + re.escape(key.encode()) + VALUE, raw)):
            run, decimals = starts[found.start(1)], found.group(1).partition(b".")[2]
            yield Column(names.index(name), run, run + 1 if decimals else None, 10.0 ** len(decimals))
    begin = raw.rfind(read.ts.encode()) + len(read.ts) if read.ts else -1
    ranks = re.compile(rb"(?: [A-Z][A-Z_]*\d{1,6})*").match(raw, begin) if begin >= 0 else None
    for found in re.compile(rb"([A-Z][A-Z_]*)(\d{1,6})\b").finditer(ranks.group() if ranks else b""):
        name = found.group(1).decode().lower()
        if name in RANKS:
            yield Column(len(DECODE_COLUMNS) + RANKS.index(name), starts[begin + found.start(2)], None, 1.0)
