"""Somebody else's process on the GPUs of a launch."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.gpu_samples import foreign

SHOWN_COUNT: Final = 3


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name in evidence.arms:
        trials = [one for one in evidence.stored.trials if one.record.trial.variant == name]
        seen = list(dict.fromkeys(text for trial in trials for text in foreign(trial)))
        if seen:
            more = f" and {len(seen) - SHOWN_COUNT} more" if len(seen) > SHOWN_COUNT else ""
            yield Finding(
                code="foreign_gpu_process",
                severity="warning",
                variant=name,
                message="Another process used the GPUs of this variant's server: it took time and memory from it.",
                evidence=", ".join(seen[:SHOWN_COUNT]) + more,
                remedy="End it, or choose other GPUs (`hardware.gpu_ids`), and run all variants again.",
            )


CHECK: Final[Check] = check
