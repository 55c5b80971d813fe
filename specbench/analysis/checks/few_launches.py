"""A speed-up near 1 that rests on one or two launches: the next launch may say the opposite."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.sentences import place
from specbench.units import Ratio, counted

NEAR_RATIO: Final[Ratio] = 0.05
"""Launches of one server differ by a percent or two, now and then by more."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name in evidence.arms:
        near = [
            row
            for row in evidence.rows(name)
            if name != evidence.suite.baseline
            and row.speedup_ratio is not None
            and row.speedup_low_ratio is None
            and abs(row.speedup_ratio - 1) < NEAR_RATIO
        ]
        if near:
            count = min(row.launch_count for row in near)
            launches = counted(count, "launch")
            yield Finding(
                code="few_launches",
                severity="note",
                variant=name,
                message=f"A speed-up this near to 1 may be chance: it rests on {launches}.",
                evidence=", ".join(f"{row.speedup_ratio:.2f}× on {place(row)}" for row in near[:3]),
                remedy="Ask for `launches: 5` or more; then it has an interval, and `specbench compare` can judge.",
            )


CHECK: Final[Check] = check
