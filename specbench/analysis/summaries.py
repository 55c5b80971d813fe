"""A cell to its row of figures, beside the baseline's."""

import math
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from specbench.analysis import Quantiles, Summary, stats
from specbench.analysis.breakeven import break_even_length, efficiency_ratio
from specbench.analysis.cells import Arm, Cell
from specbench.analysis.metrics import METRICS, accept_source, quantile, step_times_s, tpot_source, tpots_s, ttfts_s
from specbench.units import PerSecond, Ratio, Second

PAIRS_LIMIT_COUNT: Final = 3
"""Fewer launches than this have no interval worth printing."""
ALPHA_RATIO: Final = 0.01
"""Of one row's interval; rows are not corrected for each other, which is `compare`'s task."""


def figure(cell: Cell, name: str) -> float | None:
    """One metric of the table, by its name."""
    return METRICS[name].of(cell)


def summarise(arm: Arm, cell: Cell, verdict: str, speedup_ratio: Ratio | None, baseline: Cell) -> Summary:
    """`baseline` is the baseline's cell of the same level; `speedup_ratio` None where the two can't be compared.

    A synthetic arm has a break-even length, measured, and no speed-up: it ran no drafter worth the name.
    """
    length = figure(cell, "accept_length")
    output_tps = figure(cell, "output_tps")
    comparable = speedup_ratio is not None
    interval = speedup_interval(cell, baseline) if comparable and cell is not baseline and not arm.is_synthetic else None
    return Summary(
        variant=arm.variant.name,
        workload=cell.workload,
        concurrency=cell.concurrency,
        launch_count=len(cell.loads),
        request_count=len(cell.requests),
        failed_count=len(cell.requests) - len(cell.served),
        output_tps=output_tps,
        steady_tps=figure(cell, "steady_tps"),
        goodput_rps=figure(cell, "goodput_rps"),
        per_user_tps=figure(cell, "per_user_tps"),
        speedup_ratio=None if arm.is_synthetic else speedup_ratio,
        speedup_low_ratio=interval[0] if interval else None,
        speedup_high_ratio=interval[1] if interval else None,
        accept_length=length,
        accept_source=accept_source(cell),
        accept_rate_ratio=figure(cell, "accept_rate_ratio"),
        proposed_tokens=arm.proposed_tokens,
        break_even_length=break_even_length(speed_tps(baseline), speed_tps(cell), length) if comparable else None,
        efficiency_ratio=None if arm.is_synthetic else efficiency_ratio(speedup_ratio, length),
        ttft=quantiles(cell, ttfts_s),
        tpot=quantiles(cell, tpots_s),
        step_time=quantiles(cell, step_times_s),
        tpot_source=tpot_source(cell),
        longest_accept_tokens=arm.longest_accept_tokens,
        graph_ratio=figure(cell, "graph_ratio"),
        verdict=verdict,
    )


def speedup(cell: Cell, baseline: Cell) -> Ratio | None:
    """Ratio of `speed_tps`; whether it may be drawn is `parity`'s question."""
    ours, theirs = speed_tps(cell), speed_tps(baseline)
    return ours / theirs if ours is not None and theirs else None


def speedup_interval(cell: Cell, baseline: Cell) -> tuple[Ratio, Ratio] | None:
    """At 99 %, by the t of the log ratios of launches of the same block. None with fewer than three such pairs."""
    ours, theirs = ({block: speed_tps(one) for block, one in by_block(each).items()} for each in (cell, baseline))
    ratios = [mine / other for block, mine in ours.items() if mine and (other := theirs.get(block))]
    logs = [math.log(one) for one in ratios if 0 < one < math.inf]
    if len(logs) < PAIRS_LIMIT_COUNT:
        return None
    low, high = stats.interval(stats.paired(logs), ALPHA_RATIO)
    return math.exp(low), math.exp(high)


def by_block(cell: Cell) -> dict[int, Cell]:
    """A cell a block of launches."""
    blocks = dict.fromkeys(load.block_index for load in cell.loads)
    return {block: replace(cell, loads=tuple(load for load in cell.loads if load.block_index == block)) for block in blocks}


def speed_tps(cell: Cell) -> PerSecond | None:
    """tok/s; in an open loop, where that only echoes the arrivals, tok/s per user."""
    return figure(cell, "output_tps" if cell.concurrency else "per_user_tps")


def quantiles(cell: Cell, values: Callable[[Cell], list[Second]]) -> Quantiles | None:
    """With their count: p99 of fewer than 100 is the largest but for the interpolation."""
    found = values(cell)
    p50_s, p99_s = quantile(found, 0.5), quantile(found, 0.99)
    return None if p50_s is None or p99_s is None else Quantiles(p50_s=p50_s, p99_s=p99_s, count=len(found))
