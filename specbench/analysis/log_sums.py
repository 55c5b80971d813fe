"""What the decode lines of a log add up to, stretch by stretch, so that a log of any size takes the same memory.

Up to `STRETCH_LINES` decode lines every figure is exact; beyond, idle time is told within each stretch and the median of
the throughput from a histogram, to a thousandth.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from specbench.analysis.log_rows import Kept, stream_named
from specbench.analysis.stale import are_counted, commonest, stale
from specbench.units import PerSecond

STRETCH_LINES: Final = 100_000
MOST_LINES: Final = 10_000
"""Line numbers kept of each sort."""
FEWEST_ON_A_SIDE: Final = 2
MOST_SIZES: Final = 4096
"""Batch sizes told apart, per stream."""
BIN_BITS: Final = 42
"""Of a double's 52 bits behind the leading one, so many are left out in the histogram: 1024 steps while a rate doubles."""

LEAST_TPS: Final = 0.001
DEAD_ACCEPT_LENGTH: Final = 1.05
"""At or below this at every sample, no draft token was accepted."""

Floats = NDArray[np.float64]


class Pooled(Struct, frozen=True, kw_only=True):
    """Acceptance length over many lines."""

    value: float
    weights: str
    """`equal` or `running_requests`."""
    lines: tuple[int, ...]
    """The first `MOST_LINES` of them."""
    line_count: int
    estimate: bool
    """The count of running requests changed, and a line tells only its last value."""


class SwitchedOff(Struct, frozen=True, kw_only=True):
    """Speculation, in large batches."""

    running_count: int
    """Running requests from which on nothing is accepted."""
    below_length: float
    """The acceptance length with fewer."""


class Numbers:
    """Line numbers: how many, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []

    def add(self, numbers: NDArray[np.int64]) -> None:
        """In rising order."""
        self.count += len(numbers)
        self.first += numbers[: MOST_LINES - len(self.first)].tolist()


class Rates:
    """Throughputs, exact while they are few, then as a histogram."""

    def __init__(self) -> None:
        self._exact: list[Floats] = []
        self._exact_count = 0
        self._bins: dict[int, int] = {}

    def add(self, rates: Floats) -> None:
        """Of any sign; what is not positive counts as the least."""
        self._exact.append(rates)
        self._exact_count += len(rates)
        if self._exact_count > STRETCH_LINES:
            bins = np.maximum(np.concatenate(self._exact), LEAST_TPS).view(np.int64) >> BIN_BITS
            first = int(bins.min())
            counts = np.bincount(bins - first)
            for place in np.flatnonzero(counts).tolist():
                self._bins[first + place] = self._bins.get(first + place, 0) + int(counts[place])
            self._exact, self._exact_count = [], 0

    @staticmethod
    def median(many: Iterable["Rates"]) -> PerSecond | None:
        """Of all together; None when there are none."""
        many = list(many)
        exact = np.concatenate([np.zeros(0), *(part for one in many for part in one._exact)])
        if not any(one._bins for one in many):
            return float(np.median(exact)) if len(exact) else None
        bins = (np.array([*one._bins], np.int64) for one in many)
        values = [exact, *(((one << BIN_BITS) + (1 << BIN_BITS - 1)).view(np.float64) for one in bins)]
        weights = [np.ones(len(exact)), *(np.array(list(one._bins.values()), np.float64) for one in many)]
        value, weight = np.concatenate(values), np.concatenate(weights)
        order = np.argsort(value)
        passed = np.cumsum(weight[order])
        return float(value[order][np.searchsorted(passed, passed[-1] / 2)])


class _Sums:
    """One stream."""

    def __init__(self) -> None:
        self.by_size: dict[float, list[float]] = {}
        """Count of running requests (-1: not printed) to the sum of lengths and their count."""
        self.longest_length = 0.0
        self.fewest_off, self.most_on = np.inf, -np.inf
        """Fewest requests that ran in a line that accepted nothing, most in one that accepted something."""
        self.idle_tail_count = 0
        """Last lines in which requests run and no token comes out."""
        self.lines = Numbers()
        self.rates = Rates()
        self.newest: tuple[int, PerSecond] | None = None

    def add(
        self, line: NDArray[np.int64], running: Floats, length: Floats, tps: Floats, is_stale: NDArray[np.bool_]
    ) -> None:
        missing, missed = np.isnan(length), np.isnan(tps)
        if not missing.all():
            told = ~missing if missing.any() else slice(None)
            self.lines.add(line[told])
            self.longest_length = max(self.longest_length, float(length[told].max()))
            sizes, lengths = np.nan_to_num(running[told], nan=-1.0), length[told]
            self._add_sizes(sizes, lengths)
            off = lengths <= DEAD_ACCEPT_LENGTH
            self.fewest_off = min(self.fewest_off, float(sizes.min(where=off, initial=np.inf)))
            self.most_on = max(self.most_on, float(sizes.max(where=~off, initial=-np.inf)))
        moving = np.flatnonzero(~((tps == 0) & (running > 0)))
        self.idle_tail_count = len(tps) - 1 - int(moving[-1]) if len(moving) else self.idle_tail_count + len(tps)
        fresh = np.flatnonzero(~(is_stale | missed))
        if len(fresh):
            self.rates.add(tps[fresh] if len(fresh) < len(tps) else tps)
            self.newest = (int(line[fresh[-1]]), float(tps[fresh[-1]]))

    def _add_sizes(self, sizes: Floats, lengths: Floats) -> None:
        if are_counted(sizes):
            places = sizes.astype(np.int64)
            counts, totals = np.bincount(places), np.bincount(places, lengths)
            for size in np.flatnonzero(counts).tolist():
                self._add_size(size, float(totals[size]), int(counts[size]))
        else:
            for size in commonest(sizes).tolist():
                own = lengths[sizes == size]
                self._add_size(size, float(own.sum()), len(own))

    def _add_size(self, size: float, total: float, count: int) -> None:
        if size not in self.by_size and len(self.by_size) >= MOST_SIZES:
            return
        sums = self.by_size.setdefault(size, [0.0, 0.0])
        sums[0] += total
        sums[1] += count


class LogSums:
    """All streams of a log."""

    def __init__(self) -> None:
        self.stale_lines = Numbers()
        self.any_line = False
        self._streams: dict[int, _Sums] = {}
        self._waiting: list[Kept] = []
        self._waiting_count = 0

    def add(self, kept: Kept) -> None:
        """The next stretch."""
        if len(kept.rows.line):
            self._waiting.append(kept)
            self._waiting_count += len(kept.rows.line)
            self.any_line = True
        if self._waiting_count > STRETCH_LINES:
            self.finish()

    def finish(self) -> None:
        """Adds up what waits for its stretch to be whole."""
        if not self._waiting:
            return
        parts = [(one.rows.line, one.rows.stream, one.rows.running, one.rows.length, one.rows.tps) for one in self._waiting]
        line, stream, running, length, tps = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        is_stale = stale(running, length, tps, np.concatenate([one.after_idle for one in self._waiting]))
        self.stale_lines.add(line[is_stale])
        codes = np.unique(stream).tolist() if stream.min() < stream.max() else [int(stream[0])]
        for code in codes:
            own: slice | NDArray[np.intp] = np.flatnonzero(stream == code) if len(codes) > 1 else slice(None)
            self._streams.setdefault(code, _Sums()).add(line[own], running[own], length[own], tps[own], is_stale[own])
        self._waiting, self._waiting_count = [], 0

    @property
    def dp_ranks(self) -> tuple[int, ...]:
        """Data-parallel ranks that printed a whole line."""
        ranks = (stream_named(code)[0] for code in self._streams)
        return tuple(sorted({rank for rank in ranks if rank is not None}))

    def pooled(self) -> Pooled | None:
        """Weighted by running requests, which is exact while their count stays the same. Every line covers as many steps."""
        streams = [sums for sums in self._leading() if sums.by_size]
        rows = [(size, total, count) for sums in streams for size, (total, count) in sums.by_size.items()]
        if not rows:
            return None
        sizes = {size for size, _, _ in rows}
        varies = len(sizes) > 1 and -1.0 not in sizes
        weight = sum((size if varies else 1.0) * count for size, _, count in rows)
        total = sum((size if varies else 1.0) * part for size, part, _ in rows)
        return Pooled(
            value=total / weight,
            weights="running_requests" if varies else "equal",
            lines=tuple(sorted({number for sums in streams for number in sums.lines.first})[:MOST_LINES]),
            line_count=sum(sums.lines.count for sums in streams),
            estimate=varies,
        )

    @property
    def longest_length(self) -> float:
        """0 when no line prints one."""
        return max((sums.longest_length for sums in self._leading()), default=0.0)

    @property
    def idle_tail_count(self) -> int:
        """The most of any stream."""
        return max((sums.idle_tail_count for sums in self._leading()), default=0)

    def switched_off(self) -> SwitchedOff | None:
        """None unless that holds for two lines or more on either side: speculation was switched off by the batch's size."""
        streams = self._leading()
        limit = min((sums.fewest_off for sums in streams), default=np.inf)
        if limit == np.inf or not limit > max(sums.most_on for sums in streams) > 0:
            return None
        rows = [(size, *sums.by_size[size]) for sums in streams for size in sums.by_size]
        below = [(size * total, size * count, count) for size, total, count in rows if size < limit]
        if min(sum(one[2] for one in below), sum(count for size, _, count in rows if size >= limit)) < FEWEST_ON_A_SIDE:
            return None
        length = sum(one[0] for one in below) / sum(one[1] for one in below)
        return SwitchedOff(running_count=int(limit), below_length=length)

    def median_tps(self) -> PerSecond | None:
        """Of one rank's lines; stale ones left out."""
        return Rates.median(sums.rates for sums in self._leading())

    def newest_tps(self) -> PerSecond | None:
        """Each data-parallel rank's newest throughput, added up."""
        newest = [sums.newest[1] for sums in self._leading() if sums.newest is not None]
        return sum(newest) if newest else None

    def _leading(self) -> list[_Sums]:
        """One pipeline stage of each data-parallel rank: all stages serve the same requests."""
        first: dict[int | None, int] = {}
        for code in self._streams:
            dp, pp = stream_named(code)
            first[dp] = min(pp or 0, first.get(dp, pp or 0))
        named = ((stream_named(code), sums) for code, sums in self._streams.items())
        return [sums for (dp, pp), sums in named if (pp or 0) == first[dp]]
