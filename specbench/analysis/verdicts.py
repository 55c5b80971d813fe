"""The decisions, on plain values: they know no record, so that a log, a run and a table of numbers are judged alike."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from specbench.analysis.log_sums import DEAD_ACCEPT_LENGTH, FEWEST_ON_A_SIDE
from specbench.units import Ratio

MIXED_MARGIN_RATIO: Final = 0.02
"""So few decode lines in the other regime are a ramp, not a mixture."""

DECLINE_RATIO: Final = 0.15
CEILING_RATIO: Final = 0.97
SPEED_MARGIN_RATIO: Final = 0.02
WARM_FACTOR: Final = 1.5
WARM_SPREAD: Final = 1.25
BUFFERED_RATIO: Final = 0.9
BUFFERED_TOKENS: Final = 16
CHUNK_LENGTH: Final = 1.3
CHUNK_MARGIN: Final = 0.2

FAILED_LIMIT_RATIO: Final = 0.05
"""With more failed requests than this an arm did less work than the other."""

PRECEDENCE: Final = (
    "not_asked_for",
    "failed",
    "partial",
    "synthetic",
    "unknown",
    "dead_drafter",
    "speculation_inactive",
    "not_comparable",
    "concurrency_capped",
    "graphs_off",
    "mixed_graph_regimes",
    "server_died",
    "server_hung",
    "engine_wedged",
    "no_drafts_after_first_request",
    "decode_starved_by_transfer",
    "warmup_in_window",
    "stream_buffered",
    "itl_is_per_chunk",
    "spec_fallback_engaged",
    "acceptance_declining",
    "slower_than_baseline",
    "not_significant",
    "draft_depth_too_large",
    "acceptance_at_ceiling",
    "accept_rate_misleading",
    "baseline",
    "healthy",
)
"""Causes before symptoms: the first that holds is the word for a cell."""


def is_dead(accept_lengths: Sequence[float]) -> bool:
    """Whether no sample shows more than chance."""
    return bool(accept_lengths) and max(accept_lengths) <= DEAD_ACCEPT_LENGTH


def speed_verdict(speedup_ratio: Ratio | None, interval: tuple[Ratio, Ratio] | None = None) -> str:
    """By speed alone. Acceptance never enters: the drafter that is accepted more is often the slower one.

    `interval` over launches: one that holds 1 shows no difference. Without it single launches are taken as they are.
    """
    if speedup_ratio is None:
        return "unknown"
    if interval is not None and interval[0] <= 1 <= interval[1]:
        return "not_significant"
    return "slower_than_baseline" if speedup_ratio < 1 else "healthy"


def graph_verdict(graph_ratio: Ratio | None, wanted: bool | None) -> str | None:
    """`wanted` False: switched off by design, which is no fault. None: left to the engine."""
    if graph_ratio is None or wanted is False:
        return None
    if graph_ratio <= MIXED_MARGIN_RATIO:
        return "graphs_off"
    return "mixed_graph_regimes" if graph_ratio < 1 - MIXED_MARGIN_RATIO else None


def admission_limit(
    concurrency: int, stated_limit: int | None, running_max: int | None, queue_count: int | None
) -> int | None:
    """Requests that the server lets run at once, when that is fewer than are offered; None when it holds them all.

    Stated by the server, or seen: a queue although fewer run than are offered.
    """
    if stated_limit is not None:
        return stated_limit if stated_limit < concurrency else None
    if running_max is None or not queue_count or running_max >= concurrency:
        return None
    return running_max


def same_admission(concurrency: int, one: int | None, other: int | None) -> bool:
    """Whether two arms held the same number of requests; a limit of None holds all that are offered."""
    return min(one or concurrency, concurrency) == min(other or concurrency, concurrency)


def misleads(rates_and_speeds: Iterable[tuple[float, float]]) -> bool:
    """Whether a higher accept rate goes with a lower speed for any two of these."""
    pairs = sorted(rates_and_speeds)
    return any(
        rate < other_rate and speed > other_speed
        for index, (rate, speed) in enumerate(pairs)
        for other_rate, other_speed in pairs[index + 1 :]
    )


WEDGED_LINES: Final = 3


def is_wedged(running_and_tps: Sequence[tuple[int | None, float | None]]) -> bool:
    """Whether the last lines, `WEDGED_LINES` or more, say that requests run and nothing comes out."""
    tail = list(running_and_tps)[-WEDGED_LINES:]
    return len(tail) == WEDGED_LINES and all(running and tps == 0 for running, tps in tail)


TRANSFERS: Final = ("prealloc_requests", "transfer_requests", "host_receive_requests")
"""What a decode line of SGLang's says of requests whose cache is not there yet."""


def transferring(extra: Mapping[str, object]) -> int | None:
    """Requests whose cache is still on its way; None where the line does not say."""
    told = [value for name in TRANSFERS if isinstance(value := extra.get(name), int)]
    return sum(told) if told else None


def is_starved(running_and_transferring: Sequence[tuple[int | None, int | None]]) -> bool:
    """Whether in most lines, of three or more, more requests wait for their cache than run."""
    known = [(running, moving) for running, moving in running_and_transferring if running is not None and moving is not None]
    starved = sum(moving > running for running, moving in known)
    return len(known) > 2 and starved * 2 > len(known)


def is_warming(times: Sequence[float]) -> bool:
    """Whether the first of four or more took far longer than the others, which agree among themselves: it was not warm."""
    if len(times) < 4 or min(times) <= 0:
        return False
    rest = times[1:]
    return max(rest) <= WARM_SPREAD * min(rest) and times[0] >= WARM_FACTOR * max(rest)


def is_buffered(ttft: float | None, total: float | None, output_tokens: float | None) -> bool:
    """Whether an answer of some length begins when it is nearly over: it comes in one piece."""
    return (
        ttft is not None
        and bool(total)
        and (output_tokens or 0) >= BUFFERED_TOKENS
        and ttft >= BUFFERED_RATIO * (total or 0)
    )


def is_per_chunk(itl: float | None, tpot: float | None, accept_length: float | None) -> bool:
    """Whether a tool's inter-token latency is the gap between chunks: TPOT times the tokens of a step."""
    if not itl or not tpot or accept_length is None or accept_length < CHUNK_LENGTH:
        return False
    return abs(itl / (tpot * accept_length) - 1) <= CHUNK_MARGIN and itl > tpot * (1 + CHUNK_MARGIN)


def is_fallback(running_and_lengths: Sequence[tuple[int | None, float | None]]) -> bool:
    """Whether acceptance is there below a batch size and gone above it: speculation was switched off by design."""
    known = [(running, length) for running, length in running_and_lengths if running is not None and length is not None]
    off = [running for running, length in known if length <= DEAD_ACCEPT_LENGTH]
    on = [running for running, length in known if length > DEAD_ACCEPT_LENGTH]
    return min(len(off), len(on)) >= FEWEST_ON_A_SIDE and min(off) > max(on)


def declines(lengths: Sequence[float]) -> bool:
    """Whether the last third is lower than the first by more than chance would have it, and the middle lies between."""
    third = len(lengths) // 3
    if third < 2:
        return False
    first, middle, last = (fmean(part) for part in (lengths[:third], lengths[third:-third], lengths[-third:]))
    return first >= middle >= last and first - last > DECLINE_RATIO * first


def is_at_ceiling(lengths: Sequence[float], longest: float | None) -> bool:
    """Whether nearly every draft token was accepted, in every sample."""
    return bool(lengths) and longest is not None and longest > 1 and min(lengths) - 1 >= CEILING_RATIO * (longest - 1)


def goes_too_deep(depths_and_speeds: Iterable[tuple[int, float]]) -> bool:
    """Whether a deeper draft is slower than a shallower one, by more than a measurement tells apart."""
    pairs = sorted(depths_and_speeds)
    return any(
        depth < deeper and speed > other * (1 + SPEED_MARGIN_RATIO)
        for index, (depth, speed) in enumerate(pairs)
        for deeper, other in pairs[index + 1 :]
    )


def foremost(verdicts: Iterable[str]) -> str:
    """The one word for a cell."""
    found = set(verdicts)
    return next((one for one in PRECEDENCE if one in found), "unknown")


def in_order(verdicts: Iterable[str]) -> tuple[str, ...]:
    """Each once, causes first; `healthy` and `unknown` only when nothing else is said."""
    found = set(verdicts)
    telling = tuple(one for one in PRECEDENCE if one in found and one not in ("healthy", "unknown"))
    return telling or tuple(one for one in ("healthy", "unknown") if one in found)[:1]
