"""Draft tokens, steps and top-k do not fit together."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check

CHAINED: Final = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
FIX: Final = "State all three so that they agree; with top-k 1: draft tokens = steps + 1."


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    if facts.engine != "sglang" or facts.algorithm not in CHAINED:
        return
    words = facts.words
    steps, topk, tokens = words.steps, words.topk, words.draft_tokens
    shown = f"steps {steps}, top-k {topk}, draft tokens {tokens}"
    if steps is None:
        if topk is not None or tokens is not None:
            message = "--speculative-num-steps is missing while its companions are given: SGLang dies on an assertion."
            yield facts.say("draft_tokens_inconsistent", "error", message, shown, FIX)
    elif topk == 1 and tokens is not None and tokens != steps + 1:
        message = (
            f"With top-k 1 the server silently replaces the {tokens} draft tokens asked for by steps + 1 = {steps + 1}."
        )
        yield facts.say("draft_tokens_inconsistent", "warning", message, shown, FIX)
    elif topk is not None and topk > 1 and tokens is not None:
        yield from _tree(facts, steps, topk, tokens)


def _tree(facts: Facts, steps: int, topk: int, tokens: int) -> Iterable[Finding]:
    shown = f"steps {steps}, top-k {topk}, draft tokens {tokens}"
    largest = topk + (steps - 1) * topk * topk + 1
    if tokens > largest:
        message = (
            f"A tree of {steps} steps and top-k {topk} has {largest} nodes; {tokens} draft tokens can't be chosen from it."
        )
        yield facts.say("draft_tokens_inconsistent", "error", message, shown, f"Ask for at most {largest} draft tokens.")
    elif tokens < steps + 1:
        message = (
            f"{tokens} draft tokens can't hold a branch of {steps} steps: the last {steps + 1 - tokens} steps are wasted."
        )
        yield facts.say("draft_tokens_inconsistent", "warning", message, shown, f"Ask for {steps + 1} draft tokens or more.")


CHECK: Final[Check] = check
