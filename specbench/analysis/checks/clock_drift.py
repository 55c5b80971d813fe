"""GPU clocks under load that differ from launch to launch: what is compared is then the clock, too."""

import statistics
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.gpu_samples import sm_clocks_mhz
from specbench.units import Ratio

TOLERATED_RATIO: Final[Ratio] = 0.02
"""Between the median clocks of two launches: the size of the differences that a benchmark is asked about."""
FEWEST_COUNT: Final = 5
"""Samples of a launch, below which its median says nothing."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a run, about the slowest launch and the fastest."""
    medians = {}
    for trial in evidence.stored.trials:
        clocks = sm_clocks_mhz(trial)
        if len(clocks) >= FEWEST_COUNT:
            medians[trial.record.trial.folder] = statistics.median(clocks)
    if len(medians) < 2:
        return
    slowest, fastest = min(medians, key=lambda one: medians[one]), max(medians, key=lambda one: medians[one])
    if medians[fastest] > (1 + TOLERATED_RATIO) * medians[slowest]:
        yield Finding(
            code="clock_drift",
            severity="warning",
            message="The GPUs ran at other clocks in one launch than in another: a part of any difference is theirs.",
            evidence=f"median under load: {slowest} {medians[slowest]:.0f} MHz, {fastest} {medians[fastest]:.0f} MHz",
            remedy="Lock the clocks (nvidia-smi -lgc), see to cooling, and take more `launches`.",
        )


CHECK: Final[Check] = check
