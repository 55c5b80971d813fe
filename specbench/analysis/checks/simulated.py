"""The figures come from a cost model."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """Said once, whatever else is said."""
    if evidence.stored.run.simulated or any(one.record.simulated for one in evidence.stored.trials):
        yield Finding(
            code="simulated",
            severity="note",
            message="SIMULATED: a cost model made these figures; no engine ran and no GPU was used.",
            evidence=evidence.stored.run.rehearsal or "",
            remedy="Run the suite without --rehearse on the machine it is meant for before deciding anything.",
        )


CHECK: Final[Check] = check
