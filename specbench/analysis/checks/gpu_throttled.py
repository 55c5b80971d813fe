"""GPUs that were held back while the load ran: by heat, by the power limit, by the board."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.gpu_samples import holding_back
from specbench.units import Ratio, counted

TOLERATED_RATIO: Final[Ratio] = 0.05
"""Of the samples; a moment at the power limit is part of every load."""
POWER: Final = "sw_power_cap"


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant. At the power limit alone is a note: that is how a GPU runs at its best, and it is the same for all."""
    for name in evidence.arms:
        count, reasons = 0, Counter[str]()
        for trial in evidence.stored.trials:
            if trial.record.trial.variant == name:
                seen_count, seen = holding_back(trial)
                count, reasons = count + seen_count, reasons + seen
        held = {reason: seen for reason, seen in reasons.items() if seen > TOLERATED_RATIO * count}
        if held:
            told = ", ".join(f"{reason} {seen}" for reason, seen in sorted(held.items()))
            yield Finding(
                code="gpu_throttled",
                severity="note" if set(held) == {POWER} else "warning",
                variant=name,
                message="The GPUs were held back during the load: its figures are those of a slower GPU.",
                evidence=f"{told} of {counted(count, 'sample')}",
                remedy="See to cooling and the power limit (nvidia-smi -q -d PERFORMANCE), and run all variants again.",
            )


CHECK: Final[Check] = check
