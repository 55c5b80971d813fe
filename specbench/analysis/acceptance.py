"""What a server's own log says of acceptance and speed, pooled. Pure: lines in, a `LogReport` out.

Per-request counts, where a server gives them, are better: a log holds only whole intervals. Neither text nor lines are
kept, only sums, so that a log of any size can be read.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from specbench.analysis.log_rows import Idle, Rows, Streams, code_of, joined, rows_of, stream_of
from specbench.analysis.log_sums import DEAD_ACCEPT_LENGTH, LogSums, Numbers, Pooled, SwitchedOff
from specbench.dialects import DecodeSample, LineKind, LogLine
from specbench.units import PerSecond, Ratio

RateMeaning = Callable[[list[tuple[float | None, float | None]]], tuple[str | None, int | None]]
"""(accept length, accept rate) pairs to the convention of the rate and the draft tokens that it implies."""
LineGroup = Literal["ignored", "unrecognised", "partial", "duplicate", "stale", "fatal"]
GROUPS: dict[LineKind, LineGroup] = {"unrecognised": "unrecognised", "partial": "partial", "fatal": "fatal"}
"""All other kinds without a sample are known and of no further use here."""
BATCH_LINES: Final = 4096
LONGEST_LENGTH: Final = 1025.0
"""No engine drafts more tokens a step."""
MOST_PAIRS: Final = 2000
"""Printed (length, rate) pairs that the meaning of the rate is told from."""
MOST_EXACT: Final = 50_000
"""Of so many decode lines every pair is taken, of later ones the first `FEW` of a stretch."""
FEW: Final = 64


class LogReport(Struct, frozen=True, kw_only=True):
    """A log, read whole. Line numbers are 1-based. None: the log does not say."""

    line_count: int
    sample_count: int
    pooled_accept_length: Pooled | None
    speculation_active: bool | None
    """Whether decode lines carry an acceptance length; None without any decode line."""
    dead_drafter: bool
    accept_rate_convention: str | None
    draft_tokens: int | None
    """As stated, or as the printed rates imply."""
    accept_rate_ratio: Ratio | None
    """(AL - 1) / (draft tokens - 1), recomputed from the pooled length."""
    median_tps: PerSecond | None
    """Of one rank's lines; stale ones left out."""
    server_tps: PerSecond | None
    """The newest line of each data-parallel rank, added up."""
    decode_graph_ratio: Ratio | None
    """Share of decode lines that ran in a graph; prefill lines have a flag of their own that means nothing here."""
    prefix_cache_hit_ratio: Ratio | None
    """Prompt tokens that came from the prefix cache, of all."""
    dp_ranks: tuple[int, ...]
    """Data-parallel ranks that printed a whole line."""
    lines: dict[LineGroup, tuple[int, ...]]
    """Line numbers by what became of them, the first of each. `stale`: only the line's throughput is left out."""
    stale_count: int
    longest_length: float
    """0 when no line prints a length."""
    idle_tail_count: int
    """Last lines of a stream in which requests run and no token comes out."""
    switched_off: SwitchedOff | None
    warnings: tuple[str, ...]
    """Warnings that change the question, such as `max_running_requests_reset`."""


class LogReader:
    """State while the lines go by."""

    def __init__(self) -> None:
        self.sums = LogSums()
        self.lines: dict[LineGroup, Numbers] = {
            name: Numbers() for name in ("ignored", "unrecognised", "partial", "duplicate", "fatal")
        }
        self.pairs: dict[tuple[float | None, float | None], None] = {}
        self.warnings: dict[str, None] = {}
        self.graphs = [0, 0]
        self.cached_tokens = self.prefill_tokens = self.sample_count = self.impossible_count = 0
        self._streams = Streams()
        self._samples: list[tuple[int, DecodeSample]] = []
        self._idle: list[Idle] = []
        self._groups: dict[LineGroup, list[int]] = {}

    def add(self, number: int, line: LogLine) -> None:
        """One line. It counts with the next `take`."""
        for one in (line, *line.also):
            if one.sample is not None:
                self._samples.append((number, one.sample))
            else:
                self._other(number, one)

    def _other(self, number: int, line: LogLine) -> None:
        numbers = self._groups.setdefault(GROUPS.get(line.kind, "ignored"), [])
        if number not in numbers[-1:]:
            numbers.append(number)
        if line.kind == "warning":
            self.warnings[line.name] = None
        if line.name == "flushed":
            self._idle.append(Idle(number, None))
        if line.kind == "prefill":
            self.prefill(_tokens(line.value.get("cached_tokens")), _tokens(line.value.get("new_tokens")))
            if line.value.get("running_requests") == 0:
                self._idle.append(Idle(number, code_of(stream_of(line.rank))))

    def prefill(self, cached_tokens: int, new_tokens: int) -> None:
        """Prompt tokens that came from the cache, and that did not."""
        self.cached_tokens += cached_tokens
        self.prefill_tokens += cached_tokens + new_tokens

    def take(self, rows: Rows | None = None, idle: Iterable[Idle] = ()) -> Rows:
        """Counts what was added since, with further rows among it; gives those that count, in order: none
        that says again what was said."""
        own = rows_of(self._samples)
        every = self._possible(own if rows is None else joined(rows, own) if self._samples else rows)
        kept = self._streams.take(every, sorted([*self._idle, *idle], key=lambda one: one.line))
        for group, numbers in self._groups.items():
            self.lines[group].add(np.array(numbers, np.int64))
        self._samples, self._idle, self._groups = [], [], {}
        self.sample_count += len(every.line)
        self.lines["duplicate"].add(kept.repeated)
        self._count(kept.rows)
        self.sums.add(kept)
        return kept.rows

    def _possible(self, rows: Rows) -> Rows:
        """Without figures that no server can have: they are left out and counted."""
        wrong_length = (rows.length < 1) | (rows.length > LONGEST_LENGTH)
        wrong_tps = rows.tps < 0
        if not (wrong_length.any() or wrong_tps.any()):
            return rows
        self.impossible_count += int((wrong_length | wrong_tps).sum())
        length, tps = np.where(wrong_length, np.nan, rows.length), np.where(wrong_tps, np.nan, rows.tps)
        return rows._replace(length=length, tps=tps)

    def _count(self, rows: Rows) -> None:
        """Graphs and pairs of lines that count."""
        self.graphs[0] += int((rows.graph == 1).sum())
        self.graphs[1] += int((rows.graph >= 0).sum())
        if len(self.pairs) < MOST_PAIRS and len(rows.line):
            few = slice(BATCH_LINES if self.sample_count < MOST_EXACT else FEW)
            for length, rate in dict.fromkeys(zip(rows.length[few].tolist(), rows.rate[few].tolist(), strict=True)):
                self.pairs[None if length != length else length, None if rate != rate else rate] = None

    def report(self, line_count: int, rate_meaning: RateMeaning | None, draft_tokens: int | None) -> LogReport:
        """What the lines add up to. `draft_tokens`: as stated elsewhere."""
        self.sums.finish()
        convention, meant = rate_meaning(list(self.pairs)) if rate_meaning else (None, None)
        return _report(self, line_count, convention, meant or draft_tokens)


def _tokens(value: object) -> int:
    """A printed count; 0 for what is none, such as `nan`."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def read_log(
    lines: Iterable[str],
    parse_line: Callable[[str], LogLine],
    *,
    rate_meaning: RateMeaning | None = None,
    draft_tokens: int | None = None,
) -> LogReport:
    """Reads a log once, front to back. `rate_meaning` comes from the engine's dialect."""
    reader, number = LogReader(), 0
    for number, line in enumerate(lines, start=1):
        reader.add(number, parse_line(line))
        if number % BATCH_LINES == 0:
            reader.take()
    reader.take()
    return reader.report(number, rate_meaning, draft_tokens)


def _report(reader: LogReader, line_count: int, convention: str | None, draft_tokens: int | None) -> LogReport:
    sums = reader.sums
    pooled = sums.pooled()
    proposed_tokens = draft_tokens - 1 if draft_tokens else 0
    groups: dict[LineGroup, Numbers] = {**reader.lines, "stale": sums.stale_lines}
    return LogReport(
        line_count=line_count,
        sample_count=reader.sample_count,
        pooled_accept_length=pooled,
        speculation_active=pooled is not None if sums.any_line else None,
        dead_drafter=pooled is not None and sums.longest_length <= DEAD_ACCEPT_LENGTH,
        accept_rate_convention=convention,
        draft_tokens=draft_tokens,
        accept_rate_ratio=(pooled.value - 1) / proposed_tokens if pooled and proposed_tokens > 0 else None,
        median_tps=sums.median_tps(),
        server_tps=sums.newest_tps(),
        decode_graph_ratio=reader.graphs[0] / reader.graphs[1] if reader.graphs[1] else None,
        prefix_cache_hit_ratio=reader.cached_tokens / reader.prefill_tokens if reader.prefill_tokens else None,
        dp_ranks=sums.dp_ranks,
        lines={name: tuple(numbers.first) for name, numbers in groups.items()},
        stale_count=sums.stale_lines.count,
        longest_length=sums.longest_length,
        idle_tail_count=sums.idle_tail_count,
        switched_off=sums.switched_off(),
        warnings=tuple(reader.warnings),
    )
