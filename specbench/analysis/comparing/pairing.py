"""Two sides with their launches paired, and their figures as log ratios."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final, Literal

from msgspec import Struct

from specbench.analysis import stats
from specbench.analysis.cells import ALL_WORKLOADS, Key
from specbench.analysis.comparing import Change
from specbench.analysis.comparing.decide import differences
from specbench.analysis.comparing.launches import LaunchFigures, Side
from specbench.analysis.metrics import METRICS

METRIC_NAMES: Final = (
    "output_tps",
    "accept_length",
    "ttft_p50_s",
    "tpot_p50_s",
    "ttft_p99_s",
    "tpot_p99_s",
    "goodput_rps",
)
"""What can be a primary metric, and is told at every level."""


class Pairing(Struct, frozen=True, kw_only=True):
    """Launches of both sides, as many, in the order of their blocks."""

    a: Side
    b: Side
    a_launches: tuple[LaunchFigures, ...]
    b_launches: tuple[LaunchFigures, ...]
    levels: tuple[Key, ...]
    """Asked about, and recorded whole in every launch of both."""

    @property
    def drafts_alike(self) -> bool:
        """Whether acceptance length means the same on both sides."""
        mine, theirs = ((one.variant.speculation, one.suite.drafter_of(one.variant)) for one in (self.a, self.b))
        return mine == theirs

    def values(self, metric: str, keys: Sequence[Key]) -> tuple[list[float], list[float]] | None:
        """One value a launch: the geometric mean over these levels. None as soon as one is not measured, or is 0."""
        a, b = (launch_values(side, metric, keys) for side in (self.a_launches, self.b_launches))
        return None if a is None or b is None else (a, b)

    def without(self, metric: str) -> list[str]:
        """The sides, `A` and `B`, of which a launch lacks it, or has 0, at one of the levels: `values` gives nothing."""
        sides = {
            "A": [one.figures[key].get(metric) for one in self.a_launches for key in self.levels],
            "B": [one.figures[key].get(metric) for one in self.b_launches for key in self.levels],
        }
        return [name for name, values in sides.items() if not all(values) or not values]


def launch_values(launches: Sequence[LaunchFigures], metric: str, keys: Sequence[Key]) -> list[float] | None:
    """The geometric mean over these levels, one a launch. None as soon as one is not measured, or is 0."""
    values = [[one.figures[key].get(metric) for key in keys] for one in launches]
    if not keys or not all(value for launch in values for value in launch):
        return None
    return [_geometric(launch) for launch in values]


def log_values(launches: Sequence[LaunchFigures], metric: str) -> list[float] | None:
    """Over the levels that all launches recorded."""
    keys = [key for key in launches[0].figures if all(key in one.figures for one in launches)]
    values = launch_values(launches, metric, keys)
    return None if values is None else [math.log(value) for value in values]


def pairing_of(a: Side, b: Side, level: Key | None) -> Pairing:
    """Launches of the same block make a pair; those without a partner are left out."""
    mine, theirs = ({one.block_index: one for one in side.launches} for side in (a, b))
    blocks = sorted(mine.keys() & theirs.keys())
    a_launches, b_launches = tuple(mine[one] for one in blocks), tuple(theirs[one] for one in blocks)
    launches = (*a_launches, *b_launches)
    asked = list(launches[0].figures) if launches else []
    levels = [key for key in asked if all(key in one.figures for one in launches) and level in (None, key)]
    return Pairing(a=a, b=b, a_launches=a_launches, b_launches=b_launches, levels=tuple(levels))


def direction_of(metric: str) -> Literal["higher", "lower"]:
    """Of acceptance length, which is no aim in itself, more is better between servers that draft alike."""
    return "lower" if METRICS[metric].better == "lower" else "higher"


def log_ratios(pairing: Pairing, metric: str) -> tuple[float, ...] | None:
    """log(B / A) over all levels, one a pair."""
    values = pairing.values(metric, pairing.levels)
    return None if values is None else differences(*values)


def change_of(pairing: Pairing, metric: str, keys: Sequence[Key], alpha: float) -> Change | None:
    """With the interval of a single metric, uncorrected. None where it is not measured."""
    values = pairing.values(metric, keys)
    if values is None:
        return None
    logs = differences(*values)
    low, high = stats.interval(stats.paired(logs), alpha) if len(logs) > 1 else (None, None)
    workload, concurrency = keys[0] if len(keys) == 1 else (ALL_WORKLOADS, 0)
    return Change(
        metric=metric,
        unit=METRICS[metric].unit,
        better=direction_of(metric),
        workload=workload,
        concurrency=concurrency,
        a=_geometric(values[0]),
        b=_geometric(values[1]),
        change_ratio=stats.ratio_of(fmean(logs)),
        low_ratio=None if low is None else stats.ratio_of(low),
        high_ratio=None if high is None else stats.ratio_of(high),
        pair_count=len(logs),
    )


def level_changes(pairing: Pairing, alpha: float) -> Iterator[Change]:
    """Every metric at every level."""
    for key in pairing.levels:
        for metric in METRIC_NAMES:
            change = change_of(pairing, metric, (key,), alpha)
            if change is not None:
                yield change


def _geometric(values: Sequence[float | None]) -> float:
    return math.exp(fmean(math.log(value) for value in values if value))
