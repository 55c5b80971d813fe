"""A speed-up that acceptance can't explain."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, Summary
from specbench.analysis.checks import Check, Evidence

NOISE_RATIO: Final = 0.05
"""Two runs of one server differ by so much."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """A step with speculation takes no less time than one without, so speed-up <= AL."""
    for name in evidence.arms:
        bad = [row for row in evidence.rows(name) if _too_fast(row)]
        if bad:
            seen = "; ".join(
                f"{row.speedup_ratio:.2f}× with AL {row.accept_length:.2f} ({row.workload} at {row.concurrency})"
                for row in bad
            )
            yield Finding(
                code="speedup_above_length",
                severity="warning",
                variant=name,
                message="The speed-up is larger than the acceptance length: suspect the baseline, not the drafter.",
                evidence=seen,
                remedy="Run the baseline again, and compare both servers' resolved arguments (graphs, limits, caches).",
            )


def _too_fast(row: Summary) -> bool:
    if row.speedup_ratio is None or row.accept_length is None:
        return False
    return row.speedup_ratio > row.accept_length * (1 + NOISE_RATIO)


CHECK: Final[Check] = check
