"""The values of a drafter's `fc` and `lm_head`, where they were read (`--weights`)."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.checkpoints.weights import Weights
from specbench.preflight import Facts
from specbench.preflight.checks import Check

AGAIN: Final = (
    "Take the checkpoint that training saved last and whole; check how it was converted or gathered from its shards."
)
LARGEST_MEAN_RATIO: Final = 0.1
"""Of the deviation: a trained projection is centred."""
USUAL_DEVIATION: Final = (1e-4, 1.0)


def check(facts: Facts) -> Iterable[Finding]:
    """One a tensor."""
    for one in facts.draft_weights:
        if not one.unknown and one.count:
            yield _said(facts, one)


def _said(facts: Facts, one: Weights) -> Finding:
    evidence = (
        f"{one.file}: {one.count} values, mean {one.mean:.2g}, deviation {one.deviation:.2g}, "
        f"from {one.low:.2g} to {one.high:.2g}"
    )
    if one.bad_count:
        what = f"{one.bad_count} of the {one.count} values of {one.name} are NaN or infinite"
        return facts.say("weights_not_finite", "error", f"{what}: the drafter can't propose.", evidence, AGAIN)
    if one.low == one.high == 0:
        return facts.say(
            "weights_zero", "error", f"{one.name} is all zero: it was never trained, or got lost.", evidence, AGAIN
        )
    if one.low == one.high:
        what = f"All values of {one.name} are {one.low:g}: it was never trained, or got lost."
        return facts.say("weights_constant", "error", what, evidence, AGAIN)
    low, high = USUAL_DEVIATION
    if abs(one.mean) > LARGEST_MEAN_RATIO * one.deviation or not low <= one.deviation <= high:
        what = f"The values of {one.name} are unusual: trained ones lie around 0 with a deviation of about 0.004 to 0.1."
        return facts.say("weights_unusual", "warning", what, evidence, "Compare with a drafter that works.")
    return facts.say("weights_healthy", "note", f"{one.name} is healthy: mean ≈ 0, deviation {one.deviation:.2g}.", evidence)


CHECK: Final[Check] = check
