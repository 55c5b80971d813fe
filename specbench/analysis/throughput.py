"""Output tokens per second: over a whole level, and over the part of it in which the offered load was held."""

from collections.abc import Sequence

from specbench.analysis.cells import Cell, Load
from specbench.records import RequestRecord
from specbench.timing import meets, offered_wall_s, tokens_of
from specbench.units import PerSecond, Second


def output_tps(cell: Cell) -> PerSecond | None:
    """Σ output tokens / Σ (last done − first due) over the launches. None as soon as one request has no count, or an
    impossible record."""
    tokens = [tokens_of(request) for request in cell.served]
    wall_s = sum(_wall_s(load) for load in _serving(cell))
    counted = [one for one in tokens if one is not None]
    if not tokens or len(counted) < len(tokens) or wall_s <= 0 or cell.is_lacking:
        return None
    return sum(counted) / wall_s


def goodput_rps(cell: Cell) -> PerSecond | None:
    """Requests within the objective / time that the load took, over the launches. None without an objective."""
    slo, wall_s = cell.slo, sum(offered_wall_s(load.requests, cell.rate_rps) for load in _serving(cell))
    if slo is None or wall_s <= 0 or cell.is_lacking:
        return None
    return sum(meets(request, slo) for request in cell.served) / wall_s


def steady_tps(cell: Cell) -> PerSecond | None:
    """Tokens / time inside the windows in which the offered load was held. None when it never was, or when the clock
    of one request can't be trusted."""
    tokens, held_s = 0.0, 0.0
    if cell.is_lacking or any(tokens_of(request) is None or request.stepped for request in cell.served):
        return None
    for load in _serving(cell):
        window = steady_window_s(load.requests, cell.concurrency)
        if window is not None:
            held_s += window[1] - window[0]
            tokens += sum(tokens_within(request, *window) for request in load.requests if request.error is None)
    return tokens / held_s if held_s > 0 else None


def steady_window_s(requests: Sequence[RequestRecord], concurrency: int) -> tuple[Second, Second] | None:
    """When the offered load was held: so many requests in flight, or in an open loop (concurrency 0) requests coming in."""
    return held_window_s(requests, concurrency) if concurrency else offered_window_s(requests)


def offered_window_s(requests: Sequence[RequestRecord]) -> tuple[Second, Second] | None:
    """Of an open loop: from the first request's end, when the server is no longer empty, to the last one's due time."""
    start_s = min((one.done_s for one in requests if one.error is None), default=float("inf"))
    end_s = max((one.due_s for one in requests), default=0.0)
    return (start_s, end_s) if end_s > start_s else None


def held_window_s(requests: Sequence[RequestRecord], concurrency: int) -> tuple[Second, Second] | None:
    """From the first to the last moment at which so many requests were in flight.

    In a closed loop a stream's next request leaves within a millisecond of the answer before it; these gaps stay inside.
    """
    edges = sorted([(one.sent_s, 1) for one in requests] + [(one.done_s, -1) for one in requests])
    in_flight_count, start_s, end_s = 0, None, None
    for at_s, change in edges:
        if change < 0 and in_flight_count >= concurrency:
            end_s = at_s
        in_flight_count += change
        if start_s is None and in_flight_count >= concurrency:
            start_s = at_s
    return (start_s, end_s) if start_s is not None and end_s is not None and end_s > start_s else None


def tokens_within(request: RequestRecord, start_s: Second, end_s: Second) -> float:
    """Tokens that fell into a window. A chunk's tokens are spread over the gap before it; the first chunk's are not.

    Where chunks have no counts of their own, the request's total is spread evenly over its chunks.
    """
    total = tokens_of(request) or 0
    counts: Sequence[float] = request.chunk_tokens
    if len(counts) != len(request.chunk_s):
        counts = [total / len(request.chunk_s)] * len(request.chunk_s)
    befores_s = request.chunk_s[:1] + request.chunk_s[:-1]
    return sum(
        count * _overlap_ratio(before_s, at_s, start_s, end_s)
        for count, before_s, at_s in zip(counts, befores_s, request.chunk_s, strict=True)
    )


def _overlap_ratio(before_s: Second, at_s: Second, start_s: Second, end_s: Second) -> float:
    if at_s <= before_s:
        return 1.0 if start_s < at_s <= end_s else 0.0
    return max(0.0, min(at_s, end_s) - max(before_s, start_s)) / (at_s - before_s)


def _serving(cell: Cell) -> list[Load]:
    """Launches in which at least one request of the level ended well."""
    return [load for load in cell.loads if any(request.error is None for request in load.requests)]


def _wall_s(load: Load) -> Second:
    """Of the requests that ended well: time lost on failed ones is told by `failed`, not hidden in a rate."""
    served = [one for one in load.requests if one.error is None]
    return max(one.done_s for one in served) - min(one.due_s for one in served)
