"""Seconds under load in which the GPUs told nothing."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, gpu_samples
from specbench.analysis.checks import Check, Evidence

GAP_S: Final = 10.0
"""They are asked once a second."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, of its longest gap; launches without any telemetry say so in their environment."""
    for name in evidence.arms:
        mine = [one for one in evidence.stored.trials if one.record.trial.variant == name]
        gaps = {one.record.trial.launch_index: gap for one in mine if (gap := gpu_samples.longest_gap_s(one)) is not None}
        longest = max(gaps, key=lambda index: gaps[index], default=None)
        if longest is not None and gaps[longest] > GAP_S:
            yield Finding(
                code="telemetry_gaps",
                severity="note",
                variant=name,
                message="The GPUs told nothing for a while under load: throttling or strangers may have gone unseen.",
                evidence=f"launch {longest}: {gaps[longest]:.0f} s without a sample",
                remedy="Look whether the driver hung (dmesg), or whether the machine had no CPU left for the sampler.",
            )


CHECK: Final[Check] = check
