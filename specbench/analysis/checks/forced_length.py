"""Workloads whose answers are not what the model would say."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """Answers forced past their end are accepted unlike real ones. Once for the run."""
    odd = [one.name for one in evidence.suite.workloads if one.ignore_eos]
    if odd:
        yield Finding(
            code="forced_length",
            severity="note",
            message=f"Acceptance on {', '.join(odd)} says little about real use: answers run past their end (`ignore_eos`).",
            remedy="Let answers end by themselves where acceptance matters.",
        )


CHECK: Final[Check] = check
