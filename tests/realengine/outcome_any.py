"""What a run on any real engine must show."""

from collections.abc import Iterator
from typing import Final

from specbench.analysis import Judgement, Summary
from specbench.analysis.cells import Arm, Cell

SAME_ANSWERS_AT_LEAST: Final = 0.9
"""Share of answers equal to the baseline's. A batch of another shape adds in another order: near ties may turn over."""


def rows(judgement: Judgement, variant: str) -> list[Summary]:
    """One variant's."""
    return [row for row in judgement.summaries if row.variant == variant]


def against_numbers(judgement: Judgement, variant: str) -> Iterator[str]:
    """A verdict on speed that does not follow from the measured speed."""
    for row in rows(judgement, variant):
        right = "healthy" if (row.speedup_ratio or 0) >= 1 else "slower_than_baseline"
        if row.verdict != right:
            yield f"{variant}, {row.workload} at {row.concurrency}: verdict {row.verdict}, the numbers say {right}"


def sums(cell: Cell) -> list[int]:
    """Verify steps, accepted and proposed tokens by the answers."""
    names = ("verify_count", "correct_tokens", "proposed_tokens")
    return [sum(getattr(one, name) or 0 for one in cell.served) for name in names]


def other_answers(arm: Arm, baseline: Arm) -> Iterator[str]:
    """Speculation changes the speed, never a greedy answer."""
    for key, cell in arm.cells.items():
        plain = {one.prompt_id: one.output_text for one in baseline.cells[key].served}
        same = [one.output_text == plain.get(one.prompt_id) for one in cell.served]
        if not same or sum(same) < SAME_ANSWERS_AT_LEAST * len(same):
            yield f"{arm.variant.name}, {key[0]} at {key[1]}: {sum(same)} of {len(same)} answers are the baseline's"
