"""A GPU that fell off the bus."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.gpu_samples import lost


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a launch that saw it."""
    for trial in evidence.stored.trials:
        for index, at_s in lost(trial).items():
            yield Finding(
                code="gpu_lost",
                severity="error",
                variant=trial.record.trial.variant,
                message=f"GPU {index} was lost: the driver does not reach it any more.",
                evidence=f"launch {trial.record.trial.launch_index}, first missed {at_s:.0f} s after its begin",
                remedy="Look for Xid errors (dmesg), reset the GPU or restart the machine, and run this variant again.",
            )


CHECK: Final[Check] = check
