"""What the lines of a log add up to while they go by: a timeline, counts, start-up, settings."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from specbench.analysis.log_counts import LOG_INTERVAL_S, STALE_FACTOR, Counts
from specbench.analysis.log_rows import Rows
from specbench.dialects import DecodeSample, LogLine
from specbench.dialects.detect import Engine, writer_of_figures
from specbench.units import PerSecond, Second

EXAMPLES: Final = 5
KILLING: Final = ("exception", "child_failed", "subprocess_crashed", "watchdog_timeout")
"""Faults that end an SGLang server; others may be about one request."""
MOST_STARTS: Final = 1000
BUCKETS: Final = 12

Floats = NDArray[np.float64]


class Bucket(Struct, frozen=True, kw_only=True):
    """Some consecutive records."""

    first_ts: str | None
    last_ts: str | None
    record_count: int
    accept_length: float | None
    gen_throughput_tps: PerSecond | None


class Phase(Struct, frozen=True, kw_only=True):
    """A step of the start-up, as the log states it."""

    name: str
    ts: str | None
    elapsed_s: float | None


class _Row(Struct):
    """Records folded together; `interval_s` of the longest."""

    first_ts: str | None
    last_ts: str | None
    count: int
    weighted_length: float
    weight_count: float
    sum_tps: float
    tps_count: int


class Timeline:
    """Rows in order; neighbours are folded when there are too many."""

    def __init__(self, most: int = 480) -> None:
        self.rows: list[_Row] = []
        self._most = most
        self._size = 1
        self._records = 0
        self._recent = _nothing()

    def add(self, ts: str | None, length: float | None, weight: float, tps: float | None) -> None:
        """One record."""
        new = _Row(
            ts, ts, 1, weight * (length or 0.0), weight if length is not None else 0.0, tps or 0.0, int(tps is not None)
        )
        self._put(new, bool(self.rows) and self.rows[-1].count < self._size)

    def add_many(self, ts: Callable[[int], str | None], lengths: Floats, weights: Floats, rates: Floats) -> None:
        """Many records, NaN where one does not say; `ts` gives the clock of one by its place."""
        if not len(lengths):
            return
        while self._records + len(lengths) > self._most * self._size:
            self._coarsen()
        told, rated = ~np.isnan(lengths), ~np.isnan(rates)
        weighted = np.where(told, weights * lengths, 0.0)
        room = self._size - self.rows[-1].count if self.rows else 0
        starts = np.array([0, *range(room or self._size, len(lengths), self._size)])
        columns = (weighted, np.where(told, weights, 0.0), np.where(rated, rates, 0.0), rated.astype(np.int64))
        sums = zip(*(np.add.reduceat(column, starts).tolist() for column in columns), strict=True)
        ends = [*starts[1:].tolist(), len(lengths)]
        for start, end, (length, weight, tps, tps_count) in zip(starts.tolist(), ends, sums, strict=True):
            new = _Row(ts(start), ts(end - 1), end - start, length, weight, tps, tps_count)
            self._put(new, start == 0 and room > 0)

    def recent(self) -> Bucket:
        """The records since this was last asked."""
        row, self._recent = self._recent, _nothing()
        return _bucket([row])

    def _put(self, new: _Row, into_last: bool) -> None:
        self._records += new.count
        _fold(self._recent, new)
        if into_last:
            _fold(self.rows[-1], new)
        else:
            self._append(new)

    def _append(self, new: _Row) -> None:
        self.rows.append(new)
        if len(self.rows) > self._most:
            self._coarsen()

    def _coarsen(self) -> None:
        """Neighbours become one."""
        self._size *= 2
        for left, right in zip(self.rows[::2], self.rows[1::2], strict=False):
            _fold(left, right)
        self.rows = self.rows[::2]

    def buckets(self, most: int = BUCKETS) -> tuple[Bucket, ...]:
        """At most `most`, of about as many records each."""
        size = max(1, -(-len(self.rows) // most))
        return tuple(_bucket(self.rows[start : start + size]) for start in range(0, len(self.rows), size))


def _nothing() -> _Row:
    return _Row(None, None, 0, 0.0, 0.0, 0.0, 0)


def _bucket(rows: Sequence[_Row]) -> Bucket:
    weight, tps_count = sum(one.weight_count for one in rows), sum(one.tps_count for one in rows)
    return Bucket(
        first_ts=rows[0].first_ts,
        last_ts=rows[-1].last_ts,
        record_count=sum(one.count for one in rows),
        accept_length=sum(one.weighted_length for one in rows) / weight if weight else None,
        gen_throughput_tps=sum(one.sum_tps for one in rows) / tps_count if tps_count else None,
    )


def _fold(into: _Row, other: _Row) -> None:
    into.first_ts = into.first_ts or other.first_ts
    into.last_ts = other.last_ts or into.last_ts
    into.count += other.count
    into.weighted_length += other.weighted_length
    into.weight_count += other.weight_count
    into.sum_tps += other.sum_tps
    into.tps_count += other.tps_count


class Tally:
    """What is counted alike for every engine."""

    def __init__(self, engine: Engine, version: str | None) -> None:
        self.engine = engine
        self.version = version
        self.counts = Counts()
        self.timeline = Timeline()
        self.kinds: Counter[str] = Counter()
        self.unrecognised: list[tuple[int, str]] = []
        self.phases: dict[str, Phase] = {}
        self._begun: set[str] = set()
        """Phases whose first line was seen."""
        self.settings: dict[str, Any] = {}
        self.warnings: dict[str, int] = {}
        self.ready = self.is_tool = self.killed = False
        self.number = self.samples = 0
        self.rates: deque[float] = deque(maxlen=100_000)
        self.intervals: deque[tuple[int, float]] = deque(maxlen=100_000)
        self.busy_after_last = self.requests = self.without_drafts_after = 0
        self.first_record = self.last_record = 0
        """Line numbers; 0 without a record."""
        self.starts: list[int] = []
        """Lines that say a server starts or is ready, the first few."""
        self.foreign: Counter[str] = Counter()
        """Lines of other engines, by engine."""
        self.impossible = 0
        """Records with figures that can't be: AL below 1, or below zero tok/s."""

    def add(self, number: int, line: LogLine) -> None:
        """One message, and its line's number. SGLang's decode lines come through `add_rows`."""
        self.number = number
        self.kinds[line.kind] += 1
        self.killed = self.killed or (line.name in KILLING and line.ts is not None)  # without a clock: a prompt's text?
        if line.sample is not None:
            self._sample(line.sample)
        elif line.kind == "unrecognised" and len(self.unrecognised) < EXAMPLES:
            self.unrecognised.append((self.number, line.text[:200]))
        elif line.kind == "phase":
            self._phase(line)
        elif line.kind == "warning":
            self.warnings.setdefault(line.name, self.number)
        self.ready = self.ready or line.kind == "ready"
        if line.kind == "ready" or line.name in ("server_args", "arguments"):
            self.starts += [number] if len(self.starts) < MOST_STARTS else []
        if line.kind in ("noise", "unrecognised") and (other := writer_of_figures(line.text)) not in (None, self.engine):
            self.foreign[str(other)] += 1
        self._known(line)

    @property
    def restart_count(self) -> int:
        """Servers that started after the first record was written."""
        return sum(1 for number in self.starts if self.first_record and number > self.first_record)

    def _known(self, line: LogLine) -> None:
        value = line.value
        if line.name in ("arguments", "configuration", "command", "server_args"):
            self.settings.update(value)
        if line.name == "ready":
            self.phases.setdefault("ready", Phase(name="ready", ts=line.ts, elapsed_s=None))
        if self.version is None and "version" in value:
            self.version = str(value["version"])
        if line.name == "drafter" and "drafter" in value:
            self.settings.setdefault("drafter", value["drafter"])
        if line.name == "statistics":
            self.counts.statistics(value)
        if line.name == "engine" and line.kind == "known" and value.get("gen_throughput_tps"):
            self.rates.append(value["gen_throughput_tps"])
            self.busy_after_last += 1
        if line.name == "request" and line.kind == "known":
            self.requests += 1
            self.rates.append(value["gen_throughput_tps"])
            self.busy_after_last += 1
            self.counts.request_tokens += int(value["output_tokens"])

    def _phase(self, line: LogLine) -> None:
        """Where a line does not say how long it took, by its clock since the first line of the phase."""
        before = self.phases.get(line.name)
        ts = line.ts if before is None or before.ts is None else before.ts
        elapsed, state = line.value.get("elapsed_s"), line.value.get("state")
        if state == "begin":
            self._begun.add(line.name)
        if elapsed is None and state == "end" and line.name in self._begun:
            elapsed = between_s(ts, line.ts)
        if before is None or elapsed is not None:
            self.phases[line.name] = Phase(name=line.name, ts=ts, elapsed_s=elapsed)

    def add_rows(self, rows: Rows, ts: Callable[[int], str | None]) -> None:
        """SGLang's decode lines; `ts` gives the clock of one by its place."""
        self.samples += len(rows.line)
        if len(rows.line):
            self._mark(int(rows.line[0]))
            self._mark(int(rows.line[-1]))
        weights = np.where(rows.running > 0, rows.running, 1.0)
        told = ~np.isnan(rows.length)
        every = bool(told.all())
        self.counts.spread.add_many(rows.length if every else rows.length[told], weights if every else weights[told])
        self.timeline.add_many(ts, rows.length, weights, rows.tps)

    def _mark(self, number: int) -> None:
        self.first_record = self.first_record or number
        self.last_record = number

    def _sample(self, sample: DecodeSample) -> None:
        if self.engine == "sglang":
            return
        self.samples += 1
        self._mark(self.number)
        extra = sample.extra
        self.counts.request_tokens -= int(extra.get("output_tokens", 0)) if "lines" not in extra else 0
        if extra.get("drafted_tps"):
            self.intervals.append((self.number, float(extra["drafted"]) / float(extra["drafted_tps"])))
        self.is_tool = self.is_tool or "lines" in extra
        before = self.counts.spread.weight
        length = self.counts.add(sample)
        self.timeline.add(sample.ts, length, self.counts.spread.weight - before, sample.gen_throughput_tps)
        if extra.get("drafted"):
            self.busy_after_last = 0

    def stale(self) -> list[int]:
        """Line numbers of records whose interval held idle time."""
        return stale_intervals(list(self.intervals))


def between_s(first_ts: str | None, last_ts: str | None) -> Second | None:
    """From clock to clock, as far as they print it. None for a clock in no standard form, and for one that was set back."""
    try:
        seconds = (datetime.fromisoformat(last_ts or "") - datetime.fromisoformat(first_ts or "")).total_seconds()
    except (ValueError, TypeError):  # TypeError: one has a time zone, one has none
        return None
    return seconds if seconds >= 0 else None


def stale_intervals(intervals: list[tuple[int, float]]) -> list[int]:
    """(line, seconds) pairs to the lines whose interval is far longer than the usual one."""
    lengths = sorted(length_s for _, length_s in intervals)
    usual_s = min(lengths[len(lengths) // 4], LOG_INTERVAL_S * 6) if len(lengths) > 1 else LOG_INTERVAL_S
    return [line for line, length_s in intervals if length_s > STALE_FACTOR * usual_s]
