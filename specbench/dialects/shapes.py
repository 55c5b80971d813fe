"""Shapes of log lines: all lines of one shape differ in their digits alone, so that numpy reads thousands at once.

A shape is learned from one line and believed only when the grammar reads that line, with other digits put in, as the
shape predicts. A line has it when, each digit made a 0, it is the same to the last byte.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import LogLine
from specbench.dialects.sglang_log import NAMES

LONGEST_BYTES: Final = 512
"""Longer lines have no shape: they hold somebody's text."""
DIGITS: Final = b"0123456789"
MASK: Final = bytes.maketrans(DIGITS, b"0" * len(DIGITS))
FOLD: Final = 16
PROBES: Final = (b"0000000000", b"9999999999", b"3690258147")
"""What each digit becomes in a probe."""
SKIPPED: Final = ("access", "progress", "request_echo")
"""Lines that carry nothing whatever their digits are."""
RANKS: Final = ("dp", "pp", "tp")
DECODE_COLUMNS: Final = ("running_requests", "accept_length", "accept_rate", "gen_throughput_tps")
PREFILL_COLUMNS: Final = ("running_requests", "cached_tokens", "new_tokens")
COLUMN_COUNT: Final = len(DECODE_COLUMNS) + len(RANKS)
VALUE: Final = rb": (\d{1,9}(?:\.\d{1,4})?)(?=,|$|\s)"
"""13 digits at most: products stay whole numbers in a double."""


class Slot(NamedTuple):
    """Where a number stands in a line."""

    start: int
    end: int


class Shape(NamedTuple):
    """What is known of every line that fits."""

    line: LogLine
    """The one it was learned from: kind, name and CUDA graph are the same in all."""
    pattern: bytes
    """That line, each digit made a 0."""
    least: NDArray[np.uint8]
    most: NDArray[np.uint8]
    """What each byte may be: itself, a digit any digit."""
    ts: Slot | None
    columns: tuple[int, ...]
    """Those that are printed."""
    positions: NDArray[np.intp]
    """(digits,): where the digits of these columns stand, one column after the other."""
    weights: NDArray[np.float64]
    """(columns, digits): a digit's power of ten."""
    offsets: NDArray[np.float64]
    """(columns, 1)"""
    scales: NDArray[np.float64]
    """(columns, 1)"""

    def fits(self, rows: NDArray[np.uint8]) -> bool:
        """Whether all of these (lines, bytes) have it."""
        least, most = _over_rows(np.minimum, rows), _over_rows(np.maximum, rows)
        return bool((least >= self.least).all() and (most <= self.most).all())

    def fitting(self, rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which of these (lines, bytes) have it."""
        whole: NDArray[np.bool_] = ((rows >= self.least) & (rows <= self.most)).all(axis=1)
        return whole

    def values(self, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
        """(`columns`, lines) of these (lines, bytes), exact to the last digit."""
        values = self.weights @ rows.T[self.positions].astype(np.float64)
        values -= self.offsets
        values /= self.scales
        return values


def _over_rows(reduced: np.ufunc, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """By column. Numpy goes row by row, so that a few long rows cost less than many short ones."""
    even_count, width = len(rows) // FOLD * FOLD, rows.shape[1]
    folded = reduced.reduce(rows[:even_count].reshape(-1, FOLD * width), axis=0) if even_count else rows[:0]
    columns: NDArray[np.uint8] = reduced.reduce(np.concatenate((folded.reshape(-1, width), rows[even_count:])), axis=0)
    return columns


def learn(raw: bytes, parse_line: Callable[[str], LogLine]) -> Shape | None:
    """The shape of this line; None when the grammar's reading of it depends on more than its slots."""
    if len(raw) > LONGEST_BYTES or not raw.isascii():
        return None
    read = parse_line(raw.decode())
    if read.also or not (read.kind in ("decode", "prefill") or read.name in SKIPPED):
        return None
    slots, ts = dict(_slots(raw, read)), _stamp(raw, read)
    shape = _shape(raw, read, slots, ts)
    probes = [raw, *(raw.translate(bytes.maketrans(DIGITS, digits)) for digits in PROBES)]
    return shape if all(_predicts(shape, probe, parse_line) for probe in probes) else None


def _predicts(shape: Shape, probe: bytes, parse_line: Callable[[str], LogLine]) -> bool:
    """Whether the grammar reads the probe as the shape does."""
    read = parse_line(probe.decode())
    if (read.kind, read.name, read.also) != (shape.line.kind, shape.line.name, ()):
        return False
    if read.name in SKIPPED:
        return True
    if shape.ts is None or read.ts != probe[slice(*shape.ts)].decode():
        return False
    found = np.full(COLUMN_COUNT, np.nan)
    found[list(shape.columns)] = shape.values(np.frombuffer(probe, np.uint8)[None])[:, 0]
    return np.array_equal(found, columns_of(read), equal_nan=True) and _graph(read) == _graph(shape.line)


def columns_of(line: LogLine) -> NDArray[np.float64]:
    """The columns as the grammar reads them."""
    if line.sample is not None:
        values = [getattr(line.sample, name) for name in DECODE_COLUMNS]
    else:
        values = [*(line.value.get(name) for name in PREFILL_COLUMNS), None]
    values += [(line.rank or {}).get(name) for name in RANKS]
    return np.array([np.nan if value is None or isinstance(value, str) else value for value in values], np.float64)


def _graph(line: LogLine) -> bool | None:
    return line.sample.cuda_graph if line.sample is not None else None


def _stamp(raw: bytes, read: LogLine) -> Slot | None:
    start = raw.rfind(read.ts.encode()) if read.ts else -1
    return Slot(start, start + len(read.ts)) if read.ts and start >= 0 else None


def _slots(raw: bytes, read: LogLine) -> Iterator[tuple[int, Slot]]:
    """(column, place) of each number that counts."""
    if read.name in SKIPPED:
        return
    columns = DECODE_COLUMNS if read.sample is not None else PREFILL_COLUMNS
    for key, name in NAMES.items():
        if name in columns and (found := re.search(rb"(?<![\w#])" + re.escape(key.encode()) + VALUE, raw)):
            yield columns.index(name), Slot(*found.span(1))
    stamp = _stamp(raw, read)
    ranks = re.compile(rb"(?: [A-Z][A-Z_]*\d{1,6})*").match(raw, stamp.end) if stamp else None
    for found in re.compile(rb"([A-Z][A-Z_]*)(\d{1,6})\b").finditer(ranks.group() if ranks else b""):
        name = found.group(1).decode().lower()
        if name in RANKS and stamp is not None:
            place = Slot(stamp.end + found.start(2), stamp.end + found.end(2))
            yield len(DECODE_COLUMNS) + RANKS.index(name), place


def _shape(raw: bytes, read: LogLine, slots: dict[int, Slot], ts: Slot | None) -> Shape:
    columns = tuple(sorted(slots))
    positions: list[int] = []
    weights = np.zeros((len(columns), sum(end - start for start, end in slots.values())))
    for place, column in enumerate(columns):
        own = [at for at in range(*slots[column]) if raw[at] != ord(".")]
        weights[place, len(positions) : len(positions) + len(own)] = 10.0 ** np.arange(len(own) - 1, -1, -1)
        positions += own
    weights = weights[:, : len(positions)]
    decimals = [len(raw[slice(*slots[column])].partition(b".")[2]) for column in columns]
    pattern = raw.translate(MASK)
    return Shape(
        line=read,
        pattern=pattern,
        least=np.frombuffer(pattern, np.uint8),
        most=np.frombuffer(pattern.replace(b"0", b"9"), np.uint8),
        ts=ts,
        columns=columns,
        positions=np.array(positions, np.intp),
        weights=weights,
        offsets=48.0 * weights.sum(axis=1, keepdims=True),
        scales=10.0 ** np.array(decimals, np.float64)[:, None],
    )
