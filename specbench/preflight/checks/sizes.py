"""Drafter and target differ in width or in vocabulary."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check

SHARING: Final = ("EAGLE", "EAGLE3", "NEXTN", "DFLASH")
"""They read the target's hidden states; a plain draft model has states of its own."""
ROUNDING_TOKENS: Final = 256
"""Model makers pad vocabularies; a plain draft model may differ by so much."""


def check(facts: Facts) -> Iterable[Finding]:
    """At most one of each."""
    target, draft = facts.target, facts.draft
    if target is None or draft is None or facts.algorithm in (None, "NGRAM"):
        return
    width = draft.integer("target_hidden_size") or draft.hidden_width
    if facts.algorithm in SHARING and None not in (width, target.hidden_width) and width != target.hidden_width:
        yield facts.say(
            "hidden_size_mismatch",
            "error",
            f"The drafter was trained on hidden states of width {width}; this target's are {target.hidden_width} wide.",
            f"{draft.name}: {width}; {target.name}: {target.hidden_width}",
            "The drafter belongs to another model: take the one that was trained for this target.",
        )
    theirs, ours = target.vocabulary_count, draft.vocabulary_count
    if theirs is None or ours is None or not _differ(facts.algorithm or "", ours, theirs):
        return
    llama = facts.engine == "llamacpp"
    yield facts.say(
        "vocab_mismatch",
        "error",
        f"The drafter's vocabulary has {ours} tokens, the target's {theirs}: "
        + (
            "llama.cpp logs one error line and serves on without speculation."
            if llama
            else "its proposals mean other words."
        ),
        f"{draft.name}: vocab_size {ours}; {target.name}: {theirs}",
        "Take a drafter with the target's tokenizer.",
    )


def _differ(algorithm: str, ours: int, theirs: int) -> bool:
    allowed = 0 if algorithm in SHARING else ROUNDING_TOKENS
    return abs(ours - theirs) > allowed


CHECK: Final[Check] = check
