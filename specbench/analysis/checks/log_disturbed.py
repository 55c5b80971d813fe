"""A server's log that was deleted, replaced or emptied while it was read."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence

LOSSES: Final = {
    "deleted": "deleted (it was read on, and written back)",
    "replaced": "replaced by a new file (both were read)",
    "emptied": "emptied (lines written just before may be lost)",
}


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name in evidence.arms:
        seen = Counter(
            str(one.value.get("what"))
            for trial in evidence.stored.trials
            if trial.record.trial.variant == name
            for one in trial.observations
            if one.source == "log" and one.name == "log_disturbed" and isinstance(one.value, dict)
        )
        if seen:
            yield Finding(
                code="log_disturbed",
                severity="warning" if "emptied" in seen else "note",
                variant=name,
                message="Somebody touched the server's log while it was read.",
                evidence="; ".join(LOSSES.get(what, what) for what in seen),
                remedy="Keep log rotation and clean-up away from the results folder.",
            )


CHECK: Final[Check] = check
