"""Levels that a launch recorded only in part."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name, arm in evidence.arms.items():
        if arm.cut_off:
            yield Finding(
                code="cut_off_level",
                severity="warning",
                variant=name,
                message="A level was recorded only in part; it gives no figure.",
                evidence="; ".join(arm.cut_off[:3]) + (f"; and {len(arm.cut_off) - 3} more" if len(arm.cut_off) > 3 else ""),
                remedy="Run this variant again: the run was stopped in the middle, or a file of it was cut.",
            )


CHECK: Final[Check] = check
