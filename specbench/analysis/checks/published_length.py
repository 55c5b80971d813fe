"""Acceptance far from what the drafter's makers published: a hint to look, never a verdict."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.suite import Drafter
from specbench.units import span


class Published(NamedTuple):
    """What a model card says."""

    drafter: str
    """Repository on the hub, in small letters."""
    lowest: float
    highest: float
    draft_tokens: int
    on: str


CARDS: Final = (
    Published("aq-medai/kimi-k2-instruct-eagle3", 3.165, 3.490, 4, "GSM8K, HumanEval and Math500, target Kimi-K2-Instruct"),
    Published("lightseekorg/kimi-k2.5-eagle3", 2.69, 3.34, 4, "MT-Bench, GSM8K, HumanEval and MATH500, target Kimi-K2.5"),
)
MARGIN_RATIO: Final = 0.25
"""Other prompts differ by as much."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, with the published draft length only: another has another length."""
    if evidence.stored.run.simulated:
        return
    for name, arm in evidence.arms.items():
        card = _card(evidence.suite.drafter_of(arm.variant))
        lengths = [row.accept_length for row in evidence.rows(name) if row.accept_length is not None]
        if card is None or not lengths or arm.proposed_tokens != card.draft_tokens - 1 or arm.is_synthetic:
            continue
        low, high = card.lowest * (1 - MARGIN_RATIO), card.highest * (1 + MARGIN_RATIO)
        if max(lengths) < low or min(lengths) > high:
            yield Finding(
                code="published_length",
                severity="note",
                variant=name,
                message=f"AL {span(f'{min(lengths):.2f}', f'{max(lengths):.2f}')} is far from the {card.lowest:.2f} to "
                f"{card.highest:.2f} on its model card ({card.on}, {card.draft_tokens} draft tokens).",
                evidence=f"told beyond {low:.2f} to {high:.2f}",
                remedy="Other prompts, thinking, or another target explain it; if none of these applies, look at the "
                "drafter.",
            )


def _card(drafter: Drafter | None) -> Published | None:
    path = drafter.path.lower().rstrip("/") if drafter is not None else ""
    return next((card for card in CARDS if path.endswith((card.drafter, "/" + card.drafter.partition("/")[2]))), None)


CHECK: Final[Check] = check
