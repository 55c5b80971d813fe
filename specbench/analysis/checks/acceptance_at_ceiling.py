"""Every draft token is accepted: more would be, too."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import span

NEAR_RATIO: Final = 0.97
"""Of the way from 1 to the ceiling."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, when all its levels stand at the ceiling."""
    for name in evidence.arms:
        rows = [row for row in evidence.rows(name) if row.accept_length is not None and row.longest_accept_tokens]
        lengths = [row.accept_length or 0.0 for row in rows]
        if not rows or not all(
            length - 1 >= NEAR_RATIO * ((row.longest_accept_tokens or 1) - 1)
            for length, row in zip(lengths, rows, strict=True)
        ):
            continue
        yield Finding(
            code="acceptance_at_ceiling",
            severity="note",
            variant=name,
            message="Nearly every draft token is accepted: "
            f"AL {span(f'{min(lengths):.2f}', f'{max(lengths):.2f}')} of at most "
            f"{rows[0].longest_accept_tokens}.",
            evidence="a drafter that is the target itself, a faked acceptance, or prompts known by heart do this, too",
            remedy="Propose more: raise `draft_tokens`; and make sure that acceptance is not faked.",
        )


CHECK: Final[Check] = check
