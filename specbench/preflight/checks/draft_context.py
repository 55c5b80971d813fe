"""The drafter's longest sequence is shorter than the server's."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import ALLOW_LONGER, Facts, of_workload
from specbench.preflight.checks import Check

REFUSED_SINCE: Final = "0.5.1"
YES: Final = ("1", "true", "yes", "y")


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    if facts.engine != "sglang" or facts.draft is None or facts.target is None or facts.algorithm in (None, "NGRAM"):
        return
    if facts.words.draft_path is None:
        return
    ours = facts.draft.context_tokens
    theirs = facts.words.number("context-length") or facts.target.context_tokens
    if ours is None or theirs is None or ours >= theirs:
        return
    allowed = facts.env.get(ALLOW_LONGER, "").lower() in YES
    refused = facts.since(REFUSED_SINCE) and not allowed
    yield facts.say(
        "draft_context_too_short",
        "error" if refused else "warning",
        f"The drafter was trained for sequences of {ours} tokens and the server runs with {theirs}: "
        + ("SGLang refuses to start." if refused else "beyond its length it proposes nonsense."),
        _evidence(facts, ours, theirs),
        f"Give `--context-length {ours}` if your sequences fit into it, or a drafter of the target's length. "
        + (f"{ALLOW_LONGER}=1 lets it start all the same." if refused else ""),
    )


def _evidence(facts: Facts, ours: int, theirs: int) -> str:
    longest = facts.load.longest_tokens
    planned = (
        f"; the longest planned sequence{of_workload(facts.load.longest)} has {longest} tokens"
        if longest is not None
        else ""
    )
    return f"drafter {ours}, server {theirs} tokens{planned}"


CHECK: Final[Check] = check
