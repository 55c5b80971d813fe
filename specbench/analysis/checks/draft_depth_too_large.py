"""Draft tokens that cost more than they bring, by the acceptance of each position: an estimate."""

from collections.abc import Iterable, Sequence
from typing import Final

from specbench.analysis import Finding, Summary
from specbench.analysis.cells import Arm
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.profile import positions, whole
from specbench.units import Ratio, Second

FEWEST_STEPS: Final = 200
"""Fewer verify steps tell too little of the later positions."""
GAIN_RATIO: Final = 1.05
"""Less is within what the estimate can't tell."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, at its level of fewest streams that saw enough steps."""
    for name, arm in evidence.arms.items():
        rows = [row for row in evidence.rows(name) if row.step_time is not None and row.concurrency and _is_told(arm, row)]
        baseline = evidence.rows(evidence.suite.baseline)
        if arm.variant.speculation is None or arm.variant.speculation.topk != 1 or not rows:
            continue
        row = min(rows, key=lambda one: one.concurrency)
        plain = next((one for one in baseline if (one.workload, one.concurrency) == (row.workload, row.concurrency)), None)
        served = arm.cells[row.workload, row.concurrency].served
        shares = whole(positions(served), arm)
        if plain is None or plain.step_time is None or row.step_time is None or len(shares) < 2:
            continue
        if min(plain.step_time.p50_s, row.step_time.p50_s) <= 0:  # chunks that all came at once tell no step's time
            continue
        best, gain = best_depth(shares, plain.step_time.p50_s, row.step_time.p50_s)
        if gain >= GAIN_RATIO:
            yield _finding(name, arm, row, shares, best, gain)


def _is_told(arm: Arm, row: Summary) -> bool:
    """Whether the level may be compared with the baseline's, and saw enough steps."""
    if row.speedup_ratio is None:
        return False
    served = arm.cells[row.workload, row.concurrency].served
    return sum(one.verify_count or 0 for one in served) >= FEWEST_STEPS


def best_depth(shares: Sequence[Ratio], plain_s: Second, step_s: Second) -> tuple[int, Ratio]:
    """Draft tokens K that would have been best, from 1 to those there were, and by how much.

    AL of K is 1 + the first K shares; a step is taken to grow evenly from the baseline's with each draft token.
    """
    depth = len(shares)
    cost_s = max(0.0, step_s - plain_s) / depth
    speeds = [(1 + sum(shares[:place])) / (plain_s + cost_s * place) for place in range(1, depth + 1)]
    best = max(range(depth), key=speeds.__getitem__)
    return best + 1, speeds[best] / speeds[-1]


def _finding(name: str, arm: Arm, row: Summary, shares: Sequence[Ratio], best: int, gain: Ratio) -> Finding:
    told = ", ".join(f"{share:.0%}" for share in shares)
    return Finding(
        code="draft_depth_too_large",
        severity="note",
        variant=name,
        message="More is drafted a step than pays, by an estimate that takes each draft token to cost the same.",
        evidence=f"K = {len(shares)}: K = {best} would be about {gain:.2f}× as fast ({row.workload} at {row.concurrency}); "
        f"accepted by position {told}",
        remedy=f"Measure `draft_tokens: {best + 1}` beside it.",
    )


CHECK: Final[Check] = check
