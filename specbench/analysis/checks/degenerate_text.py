"""Answers that go round in circles: a loop is easy to draft, and lifts acceptance."""

import re
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.metrics import pooled_accept_length

TAIL_CHARACTERS: Final = 400
LOOP: Final = re.compile(r"(.{1,60}?)\1{5,}\s*$", re.DOTALL)
"""The same up to sixty characters six times or more at the end."""
SHORTEST_LOOP_CHARACTERS: Final = 60
TOLD_RATIO: Final = 0.1


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, when more than a tenth of its answers end in a loop."""
    for name, arm in evidence.arms.items():
        requests = [one for cell in arm.cells.values() for one in cell.served if one.output_text]
        looping = [one for one in requests if loops(one.output_text)]
        if arm.variant.speculation is None or not requests or len(looping) <= TOLD_RATIO * len(requests):
            continue
        lengths = [pooled_accept_length(pile) for pile in (looping, [one for one in requests if one not in looping])]
        told = [f"AL {'without' if place else 'with'} a loop {one:.2f}" for place, one in enumerate(lengths) if one]
        yield Finding(
            code="degenerate_text",
            severity="warning",
            variant=name,
            message=f"{len(looping)} of {len(requests)} answers end in a loop, which a drafter foresees: "
            "acceptance is flattered.",
            evidence="; ".join([f"request {looping[0].request_index} ends …{looping[0].output_text[-40:]!r}", *told]),
            remedy="Use the model's chat template and a temperature it was made for, or shorter answers.",
        )


def loops(text: str) -> bool:
    """Whether it ends by repeating itself."""
    found = LOOP.search(text[-TAIL_CHARACTERS:])
    return found is not None and len(found[0]) >= SHORTEST_LOOP_CHARACTERS


CHECK: Final[Check] = check
