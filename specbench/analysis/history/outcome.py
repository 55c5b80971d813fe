"""A run and its comparison to a row of the history."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Final

from msgspec import structs

from specbench.analysis.cells import suite_of
from specbench.analysis.comparing import Comparison, refusals
from specbench.analysis.comparing.launches import LaunchFigures, Side, read_sides
from specbench.analysis.comparing.pairing import log_values
from specbench.nights import Figures, Night, Status, Worse
from specbench.streams import OpenRun

NOT_RUN: Final = 2
"""Exit code of a night that did not run to its end."""


def measured(night: Night, result: OpenRun) -> Night:
    """The row with the figures of its run. Reads every launch."""
    suite = suite_of(result)
    names = [one.name for one in suite.variants if result.of(one.name)]
    (sides,) = read_sides([(result, suite, names)])
    return structs.replace(
        night,
        figures=tuple(_figures(sides[name], name == suite.baseline) for name in names),
        simulated=result.simulated,
        engines=tuple(dict.fromkeys(sides[name].facts.engine for name in names)),
    )


def faults(result: OpenRun, variants: Sequence[str]) -> tuple[str, ...]:
    """Why no later night could be compared with this one, of all its variants or those that are asked about."""
    suite = suite_of(result)
    names = [one.name for one in suite.variants if one.name in variants or not variants]
    (sides,) = read_sides([(result, suite, names)])
    return tuple(sentence for name in names for sentence in refusals.alone(sides[name]))


def _figures(side: Side, is_baseline: bool) -> Figures:
    launches = [one for one in side.launches if one.record.complete and one.record.failure is None and one.figures]
    return Figures(
        variant=side.variant.name,
        launch_count=len(launches),
        output_tps=_mean(launches, "output_tps"),
        accept_length=_mean(launches, "accept_length") if side.variant.speculation is not None else None,
        is_baseline=is_baseline,
    )


def _mean(launches: Sequence[LaunchFigures], metric: str) -> float | None:
    """Geometric, over the launches and the levels that all of them recorded."""
    logs = log_values(launches, metric) if launches else None
    return None if logs is None else math.exp(fmean(logs))


def compared(night: Night, comparison: Comparison, failed: bool) -> Night:
    """The row with its verdict. `failed`: a launch did, so that the night can't be good."""
    status: Status = comparison.verdict
    if failed and status != "fail":
        status = "failed"
    worse = tuple(
        Worse(variant=variant.name, metric=one.change.metric, change_ratio=one.change.change_ratio)
        for variant in comparison.variants
        for one in variant.answers
        if one.gate == "FAIL"
    )
    exit_code = comparison.exit_code or (NOT_RUN if failed else 0)
    return structs.replace(night, status=status, worse=worse, exit_code=exit_code)


def cut_off(nights: Sequence[Night]) -> tuple[Night, ...]:
    """Rows that still say `running` were left by a night that was killed: nobody else writes there."""
    sentence = "It ended without a word: killed, or the machine went down."
    return tuple(
        structs.replace(one, status="failed", headlines=(sentence,), exit_code=NOT_RUN) if one.status == "running" else one
        for one in nights
    )
