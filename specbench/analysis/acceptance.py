"""What a server's own log says of acceptance and speed, pooled. Pure: lines in, a `LogReport` out.

Per-request counts, where a server gives them, are better: a log holds only whole intervals. Text is never kept;
per decode line a few numbers are, so that a log of any size can be read.
"""

from collections.abc import Callable, Iterable
from statistics import median
from typing import Literal

from msgspec import Struct

from specbench.analysis.stale import Interval, stale_lines
from specbench.dialects import DecodeSample, LineKind, LogLine
from specbench.units import PerSecond, Ratio

RateMeaning = Callable[[list[tuple[float | None, float | None]]], tuple[str | None, int | None]]
"""(accept length, accept rate) pairs to the convention of the rate and the draft tokens that it implies."""
DEAD_ACCEPT_LENGTH = 1.05
"""At or below this at every sample, no draft token was accepted."""
LineGroup = Literal["ignored", "unrecognised", "partial", "duplicate", "stale", "fatal"]
GROUPS: dict[LineKind, LineGroup] = {"unrecognised": "unrecognised", "partial": "partial", "fatal": "fatal"}
"""All other kinds without a sample are known and of no further use here."""


class Pooled(Struct, frozen=True, kw_only=True):
    """Acceptance length over many lines."""

    value: float
    weights: Literal["equal", "running_requests"]
    lines: tuple[int, ...]
    estimate: bool
    """The count of running requests changed, and a line tells only its last value."""


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
    """Line numbers by what became of them. `stale`: only the line's throughput is left out."""
    warnings: tuple[str, ...]
    """Warnings that change the question, such as `max_running_requests_reset`."""


class _Reader:
    """State while the lines go by."""

    def __init__(self) -> None:
        self.lines: dict[LineGroup, list[int]] = {
            "ignored": [],
            "unrecognised": [],
            "partial": [],
            "duplicate": [],
            "fatal": [],
        }
        self.intervals: list[Interval] = []
        self.pairs: dict[tuple[float | None, float | None], None] = {}
        self.warnings: dict[str, None] = {}
        self.graphs = [0, 0]
        self.cached_tokens = self.prefill_tokens = self.sample_count = 0
        self._after_idle: set[tuple[int | None, int | None]] = set()
        self._last: dict[tuple[int | None, int | None], tuple[int, DecodeSample]] = {}

    def add(self, number: int, line: LogLine) -> None:
        for one in (line, *line.also):
            if one.sample is not None:
                self._decode(number, one.sample)
            else:
                self._other(number, one)

    def _other(self, number: int, line: LogLine) -> None:
        group = GROUPS.get(line.kind, "ignored")
        if number not in self.lines[group][-1:]:
            self.lines[group].append(number)
        if line.kind == "warning":
            self.warnings[line.name] = None
        if line.name == "flushed":
            self._after_idle.update(self._last)
        if line.kind == "prefill":
            self._prefill(line)

    def _prefill(self, line: LogLine) -> None:
        cached, new = line.value.get("cached_tokens", 0), line.value.get("new_tokens", 0)
        self.cached_tokens += int(cached)
        self.prefill_tokens += int(cached) + int(new)
        if line.value.get("running_requests") == 0:
            self._after_idle.add(_stream(line.rank))

    def _decode(self, number: int, sample: DecodeSample) -> None:
        stream, writer = _stream(sample.rank), (sample.rank or {}).get("tp", 0)
        before = self._last.get(stream)
        self.sample_count += 1
        if before is not None and (before[0] != writer or before[1] == sample):
            self.lines["duplicate"].append(number)
            return
        self._last[stream] = (writer, sample)
        self.pairs[sample.accept_length, sample.accept_rate] = None
        if sample.cuda_graph is not None:
            self.graphs[0] += sample.cuda_graph
            self.graphs[1] += 1
        self.intervals.append(
            Interval(
                line=number,
                stream=stream,
                after_idle=before is None or stream in self._after_idle,
                running_requests=sample.running_requests,
                accept_length=sample.accept_length,
                gen_throughput_tps=sample.gen_throughput_tps,
            )
        )
        self._after_idle.discard(stream)


def read_log(
    lines: Iterable[str],
    parse_line: Callable[[str], LogLine],
    *,
    rate_meaning: RateMeaning | None = None,
    draft_tokens: int | None = None,
) -> LogReport:
    """Reads a log once, front to back. `rate_meaning` comes from the engine's dialect."""
    reader, number = _Reader(), 0
    for number, line in enumerate(lines, start=1):
        reader.add(number, parse_line(line))
    convention, meant = rate_meaning(list(reader.pairs)) if rate_meaning else (None, None)
    return _report(reader, number, convention, meant or draft_tokens)


def pool(intervals: Iterable[Interval]) -> Pooled | None:
    """Weighted by running requests, which is exact while their count stays the same. Every line covers as many steps."""
    rows = [one for one in intervals if one.accept_length is not None]
    if not rows:
        return None
    counts = {one.running_requests for one in rows}
    varies = len(counts) > 1 and None not in counts and any(counts)
    weights = [float(one.running_requests or 0) if varies else 1.0 for one in rows]
    total = sum(weight * (one.accept_length or 0.0) for weight, one in zip(weights, rows, strict=True))
    return Pooled(
        value=total / sum(weights),
        weights="running_requests" if varies else "equal",
        lines=tuple(dict.fromkeys(one.line for one in rows)),
        estimate=varies,
    )


def _report(reader: _Reader, line_count: int, convention: str | None, draft_tokens: int | None) -> LogReport:
    stale = stale_lines(reader.intervals)
    leading = _one_stage(reader.intervals)
    fresh = [one for one in leading if one.line not in stale and one.gen_throughput_tps is not None]
    pooled = pool(leading)
    lengths = [one.accept_length for one in leading if one.accept_length is not None]
    proposed_tokens = draft_tokens - 1 if draft_tokens else 0
    return LogReport(
        line_count=line_count,
        sample_count=reader.sample_count,
        pooled_accept_length=pooled,
        speculation_active=bool(lengths) if reader.intervals else None,
        dead_drafter=bool(lengths) and max(lengths) <= DEAD_ACCEPT_LENGTH,
        accept_rate_convention=convention,
        draft_tokens=draft_tokens,
        accept_rate_ratio=(pooled.value - 1) / proposed_tokens if pooled and proposed_tokens > 0 else None,
        median_tps=median(one.gen_throughput_tps or 0.0 for one in fresh) if fresh else None,
        server_tps=_latest_sum(fresh),
        decode_graph_ratio=reader.graphs[0] / reader.graphs[1] if reader.graphs[1] else None,
        prefix_cache_hit_ratio=reader.cached_tokens / reader.prefill_tokens if reader.prefill_tokens else None,
        dp_ranks=tuple(sorted({one.stream[0] for one in reader.intervals if one.stream[0] is not None})),
        lines={**{name: tuple(found) for name, found in reader.lines.items()}, "stale": tuple(sorted(stale))},
        warnings=tuple(reader.warnings),
    )


def _stream(rank: dict[str, int] | None) -> tuple[int | None, int | None]:
    """Data-parallel and pipeline rank. Tensor-parallel ranks of one stream say the same."""
    return ((rank or {}).get("dp"), (rank or {}).get("pp"))


def _one_stage(intervals: list[Interval]) -> list[Interval]:
    """One pipeline stage of each data-parallel rank: all stages serve the same requests."""
    first: dict[int | None, int] = {}
    for one in intervals:
        stage = one.stream[1] or 0
        first[one.stream[0]] = min(stage, first.get(one.stream[0], stage))
    return [one for one in intervals if (one.stream[1] or 0) == first[one.stream[0]]]


def _latest_sum(fresh: list[Interval]) -> PerSecond | None:
    """Each data-parallel rank's newest throughput, added up."""
    latest = {one.stream[0]: one.gen_throughput_tps or 0.0 for one in fresh}
    return sum(latest.values()) if latest else None
