"""Launches of one and the same server: how far they differ by themselves, and what can therefore be seen. Pure."""

import itertools
import math
from collections.abc import Sequence
from statistics import stdev
from typing import Any

from msgspec import Struct

from specbench.analysis import stats
from specbench.analysis.comparing import ALPHA_RATIO, MARGIN_RATIO, PRIMARY, SideFacts
from specbench.analysis.comparing.decide import detectable
from specbench.analysis.comparing.keys import keys_of
from specbench.analysis.comparing.launches import Side
from specbench.analysis.comparing.pairing import METRIC_NAMES, log_values
from specbench.errors import SpecbenchError
from specbench.units import Ratio, counted

CALIBRATION_SCHEMA_VERSION = 1
LAUNCHES_LIMIT_COUNT = 3
PAIR_COUNTS = tuple(range(3, 21))


class Spread(Struct, frozen=True, kw_only=True):
    """One metric over the launches, geometric mean over the levels."""

    metric: str
    launch_sd_ratio: Ratio
    """Standard deviation of the log of a launch's figure."""
    neighbour_sd_ratio: Ratio
    """The same from launches that followed each other: much smaller means that the machine drifts."""


class Calibration(Struct, frozen=True, kw_only=True):
    """What is stored of one suite on one host."""

    schema_version: int = CALIBRATION_SCHEMA_VERSION
    suite_name: str
    host: str
    simulated: bool
    run: SideFacts
    """The launches that it rests on."""
    keys: dict[str, Any]
    """Comparability keys of these launches."""
    spreads: tuple[Spread, ...]

    def usable_sd(self, metric: str, pair_count: int) -> Ratio | None:
        """Of one launch; None where the launches at hand know it better, or nothing is known.

        Launches of the baseline stand for every variant: what differs between launches is the machine.
        """
        if self.run.launch_count <= pair_count:
            return None
        return next((one.launch_sd_ratio for one in self.spreads if one.metric == metric), None)


class Outlook(Struct, frozen=True, kw_only=True):
    """What so many pairs would find 9 times in 10, by metric."""

    pair_count: int
    detectable_ratio: dict[str, Ratio]


def calibrated(side: Side) -> Calibration:
    """Raises SpecbenchError with every reason when the launches are of no use."""
    reasons = [one.message for one in side.refusals]
    if len(side.launches) < LAUNCHES_LIMIT_COUNT:
        reasons.append(
            f"{counted(len(side.launches), 'launch')} of '{side.variant.name}' where {LAUNCHES_LIMIT_COUNT} are the least"
        )
    if reasons:
        raise SpecbenchError("\n".join(reasons))
    logs = {metric: log_values(side.launches, metric) for metric in METRIC_NAMES}
    return Calibration(
        suite_name=side.suite.name,
        host=str(side.run.environment.get("host") or "unknown"),
        simulated=side.simulated,
        run=side.facts,
        keys=keys_of(side.run, side.suite, side.variant, [one.record for one in side.launches]),
        spreads=tuple(_spread(metric, values) for metric, values in logs.items() if values is not None),
    )


def _spread(metric: str, logs: Sequence[float]) -> Spread:
    steps = [(after - before) ** 2 for before, after in itertools.pairwise(logs)]
    return Spread(metric=metric, launch_sd_ratio=stdev(logs), neighbour_sd_ratio=math.sqrt(sum(steps) / (2 * len(steps))))


def outlooks(calibration: Calibration, metrics: Sequence[str] = PRIMARY, alpha: float = ALPHA_RATIO) -> tuple[Outlook, ...]:
    """For 3 … 20 pairs, with as many primary metrics as were measured."""
    spreads = [one for one in calibration.spreads if one.metric in metrics]
    return tuple(
        Outlook(
            pair_count=count,
            detectable_ratio={
                one.metric: stats.ratio_of(detectable(one.launch_sd_ratio * math.sqrt(2), count, alpha, len(spreads)))
                for one in spreads
            },
        )
        for count in PAIR_COUNTS
    )


def enough_launches(found: Sequence[Outlook], margin: float = MARGIN_RATIO) -> dict[str, int | None]:
    """By metric: fewest launches a side that find a change of the margin; None: more than 20."""
    return {
        metric: next((one.pair_count for one in found if one.detectable_ratio[metric] <= margin), None)
        for metric in found[0].detectable_ratio
    }
