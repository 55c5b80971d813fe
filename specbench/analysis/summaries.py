"""A cell to its row of figures, beside the baseline's."""

from collections.abc import Callable

from specbench.analysis import Quantiles, Summary
from specbench.analysis.breakeven import break_even_length, efficiency_ratio
from specbench.analysis.cells import Arm, Cell
from specbench.analysis.metrics import METRICS, accept_source, quantile, step_times_s, tpot_source, tpots_s, ttfts_s
from specbench.units import PerSecond, Ratio, Second


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


def speed_tps(cell: Cell) -> PerSecond | None:
    """tok/s; in an open loop, where that only echoes the arrivals, tok/s per user."""
    return figure(cell, "output_tps" if cell.concurrency else "per_user_tps")


def quantiles(cell: Cell, values: Callable[[Cell], list[Second]]) -> Quantiles | None:
    """With their count: p99 of fewer than 100 is the largest but for the interpolation."""
    found = values(cell)
    p50_s, p99_s = quantile(found, 0.5), quantile(found, 0.99)
    return None if p50_s is None or p99_s is None else Quantiles(p50_s=p50_s, p99_s=p99_s, count=len(found))
