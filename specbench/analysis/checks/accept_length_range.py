"""Acceptance lengths that can't be."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, Summary
from specbench.analysis.checks import Check, Evidence

ROUNDING_LENGTH: Final = 0.01
"""Log lines print two decimals."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """1 <= AL <= min(K, steps) + 1, one finding a variant."""
    for name in evidence.arms:
        bad = [row for row in evidence.rows(name) if _impossible(row)]
        if bad:
            lengths = ", ".join(f"{row.accept_length:.2f} ({row.workload} at {row.concurrency})" for row in bad)
            yield Finding(
                code="accept_length_range",
                severity="error",
                variant=name,
                message=f"The acceptance length lies outside 1 to {bad[0].longest_accept_tokens}, which can't be.",
                evidence=f"AL {lengths}; source: {bad[0].accept_source}",
                remedy="Compare the draft tokens in the suite with the resolved ones, and see which counter is wrong.",
            )


def _impossible(row: Summary) -> bool:
    length, ceiling = row.accept_length, row.longest_accept_tokens
    if length is None:
        return False
    return length < 1 - ROUNDING_LENGTH or (ceiling is not None and length > ceiling + ROUNDING_LENGTH)


CHECK: Final[Check] = check
