"""The home of the definitions: what each figure is, in one table, `METRICS`.

Every metric is a function of one `Cell`. Warm-up never reaches a cell; a failed request counts as failed and gives no
time and no token. Totals are divided by totals, over launches and requests alike; None is never zero.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import Struct

from specbench.analysis.acceptance import read_log
from specbench.analysis.cells import Cell
from specbench.analysis.throughput import goodput_rps, output_tps, steady_tps
from specbench.dialects import LogLine
from specbench.dialects.metrics import counted_between
from specbench.records import RequestRecord
from specbench.timing import tokens_of, tokens_per_chunk_known, tpot_s, ttft_s
from specbench.units import Ratio, Second


class Metric(Struct, frozen=True, kw_only=True):
    """One definition."""

    name: str
    unit: str
    """Of the value: s, tok/s, tokens, ratio, requests or requests/s."""
    better: Literal["higher", "lower", "neither"]
    of: Callable[[Cell], float | None]
    meaning: str


def quantile(values: Iterable[float], share: Ratio) -> float | None:
    """Linear between the order statistics (numpy's default, type 7). None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def tpot_source(cell: Cell) -> Literal["chunks", "assumed_first_token", "none"]:
    """`assumed_first_token` as soon as one request needed the assumption."""
    used = [tokens_per_chunk_known(request) for request in cell.served if tpot_s(request) is not None]
    if not used:
        return "none"
    return "chunks" if all(used) else "assumed_first_token"


def ttfts_s(cell: Cell) -> list[Second]:
    """Of every request that ended well and gave a chunk."""
    return [value for request in cell.served if (value := ttft_s(request)) is not None]


def tpots_s(cell: Cell) -> list[Second]:
    """Of every request that ended well with at least two chunks and a count of tokens."""
    return [value for request in cell.served if (value := tpot_s(request)) is not None]


def step_times_s(cell: Cell) -> list[Second]:
    """Gaps between chunks, of all requests whose clock can be trusted."""
    trusted = [request for request in cell.served if not request.stepped]
    return [after - before for request in trusted for before, after in itertools.pairwise(request.chunk_s)]


def per_user_tps(cell: Cell) -> float | None:
    """1 / TPOT p50."""
    middle = quantile(tpots_s(cell), 0.5)
    return 1 / middle if middle else None


def correct_tokens_of(request: RequestRecord) -> int | None:
    """Draft tokens accepted: the engine's count, else its histogram, else what the token count leaves.

    The last form takes one token for the prefill and one bonus token a step.
    """
    if request.correct_tokens is not None:
        return request.correct_tokens
    if request.accept_histogram:
        return sum(index * steps for index, steps in enumerate(request.accept_histogram))
    total = tokens_of(request)
    if total is None or request.verify_count is None:
        return None
    return max(0, total - 1 - request.verify_count)


def pooled_accept_length(requests: Iterable[RequestRecord]) -> float | None:
    """1 + Σ correct / Σ verify steps, over the requests that carry both counts.

    Where some do, one for which nothing was drafted (`proposed_tokens` 0) had a step for each token after the first.
    """
    requests = list(requests)
    correct_tokens, verify_count = 0, 0
    if any(request.verify_count for request in requests):
        plain = [one for one in requests if one.proposed_tokens == 0 and one.verify_count is None]
        verify_count = sum(max(0, (tokens_of(one) or 0) - 1) for one in plain)
    for request in requests:
        correct = correct_tokens_of(request)
        if request.verify_count and correct is not None:
            correct_tokens += correct
            verify_count += request.verify_count
    return 1 + correct_tokens / verify_count if verify_count else None


def accept_source(cell: Cell) -> Literal["requests", "metrics", "log", "none"]:
    """Where AL comes from: the requests' own counters, else the server's, else the log, else nowhere."""
    if pooled_accept_length(cell.served) is not None:
        return "requests"
    if counted_accept_length(cell) is not None:
        return "metrics"
    return "none" if logged_accept_length(cell) is None else "log"


def accept_length(cell: Cell) -> float | None:
    """Exact from the requests' counters, or from the server's over a level; an estimate from log lines without both."""
    exact = pooled_accept_length(cell.served)
    exact = counted_accept_length(cell) if exact is None else exact
    return logged_accept_length(cell) if exact is None else exact


def counted_accept_length(cell: Cell) -> float | None:
    """1 + Σ accepted / Σ verify steps by `/metrics`, over the launches; None unless each of them was counted, and where
    nothing was drafted at all: a server that dropped its drafter counts on.

    The counters of vLLM and llama.cpp leave out steps that drafted nothing, of which lookup has many. Each step yields one
    token more than it accepts, and each answer's first token is the prefill's: the rest of the output tells those steps.
    """
    accepted_tokens, verify_count, draft_count = 0, 0, 0
    for load in cell.loads:
        counted = counted_between(*load.counters) if load.counters else None
        if counted is None:
            return None
        begun = sum(bool(request.chunk_s) for request in load.requests)
        by_tokens = (counted.output_tokens or 0) - begun - counted.accepted_tokens
        accepted_tokens += counted.accepted_tokens
        draft_count += counted.draft_count
        verify_count += max(counted.draft_count, by_tokens)
    return 1 + accepted_tokens / verify_count if draft_count else None


def logged_accept_length(cell: Cell) -> float | None:
    """From decode lines, pooled as `acceptance` pools a whole log: doubles and pipeline stages are left out."""
    samples = cell.samples
    report = read_log(map(str, range(len(samples))), lambda place: LogLine(kind="decode", sample=samples[int(place)]))
    return report.pooled_accept_length.value if report.pooled_accept_length else None


def accept_rate_ratio(cell: Cell) -> Ratio | None:
    """(AL − 1) / K; the printed rate is never used."""
    length = accept_length(cell)
    return None if length is None or not cell.proposed_tokens else (length - 1) / cell.proposed_tokens


def graph_ratio(cell: Cell) -> Ratio | None:
    """Decode lines that say a CUDA graph ran / decode lines that say either."""
    said = [sample.cuda_graph for sample in cell.samples if sample.cuda_graph is not None]
    return sum(said) / len(said) if said else None


def failed_count(cell: Cell) -> float | None:
    """Measured requests that ended with an error."""
    return len(cell.requests) - len(cell.served)


def _quantile_of(values: Callable[[Cell], list[Second]], share: Ratio) -> Callable[[Cell], float | None]:
    return lambda cell: quantile(values(cell), share)


def _metric(
    name: str, unit: str, better: Literal["higher", "lower", "neither"], of: Callable[[Cell], float | None], meaning: str
) -> Metric:
    return Metric(name=name, unit=unit, better=better, of=of, meaning=meaning)


METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        _metric("output_tps", "tok/s", "higher", output_tps, "output tokens / time from first due to last done"),
        _metric("steady_tps", "tok/s", "higher", steady_tps, "the same while the offered load was held"),
        _metric(
            "goodput_rps", "requests/s", "higher", goodput_rps, "requests within `slo` / time from first due to last done"
        ),
        _metric("per_user_tps", "tok/s", "higher", per_user_tps, "1 / TPOT p50"),
        _metric("accept_length", "tokens", "neither", accept_length, "1 + accepted draft tokens / verify steps, pooled"),
        _metric("accept_rate_ratio", "ratio", "neither", accept_rate_ratio, "(AL − 1) / K"),
        _metric("ttft_p50_s", "s", "lower", _quantile_of(ttfts_s, 0.5), "first chunk − due, median"),
        _metric("ttft_p99_s", "s", "lower", _quantile_of(ttfts_s, 0.99), "first chunk − due, 99th percentile"),
        _metric("tpot_p50_s", "s", "lower", _quantile_of(tpots_s, 0.5), "time per token after the first chunk, median"),
        _metric("tpot_p99_s", "s", "lower", _quantile_of(tpots_s, 0.99), "time per token, 99th percentile"),
        _metric("step_p50_s", "s", "lower", _quantile_of(step_times_s, 0.5), "gap between chunks, median"),
        _metric("step_p99_s", "s", "lower", _quantile_of(step_times_s, 0.99), "gap between chunks, 99th percentile"),
        _metric("graph_ratio", "ratio", "higher", graph_ratio, "share of decode lines in a CUDA graph"),
        _metric("failed_count", "requests", "lower", failed_count, "measured requests that failed"),
    )
}
