"""Acceptance that falls in the course of the run, or the deeper an answer gets."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, Part
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.profile import profile_of

FALL_RATIO: Final = 0.15
"""Of AL - 1 and of AL both: what is tolerated as chance and as a change of prompts."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most two a variant."""
    for name, arm in evidence.arms.items():
        if arm.variant.speculation is None or "dead_drafter" in evidence.codes.get(name, ()):
            continue
        profile = profile_of(arm)
        if fell(profile.quarters) and fell(profile.quarters[1:]):
            yield _finding(
                name,
                "the longer the server runs",
                profile.quarters,
                "See whether memory, cache or batch grow meanwhile in the server's log, and restart it to compare.",
            )
        if fell(profile.depths):
            yield _finding(
                name,
                "the deeper an answer gets",
                profile.depths,
                "The drafter may have been trained for short sequences: see its `max_position_embeddings`.",
            )


def fell(parts: tuple[Part, ...]) -> bool:
    """From the first part to the last, by more than is tolerated."""
    if len(parts) < 2:
        return False
    first, last = parts[0].accept_length, parts[-1].accept_length
    return first - last > FALL_RATIO * first and first - last > FALL_RATIO * (first - 1)


def _finding(name: str, when: str, parts: tuple[Part, ...], remedy: str) -> Finding:
    return Finding(
        code="acceptance_declining",
        severity="warning",
        variant=name,
        message=f"Acceptance falls {when}: from {parts[0].accept_length:.2f} to "
        f"{parts[-1].accept_length:.2f} tokens a step.",
        evidence="; ".join(f"{one.name}: {one.accept_length:.2f}" for one in parts),
        remedy=remedy,
    )


CHECK: Final[Check] = check
