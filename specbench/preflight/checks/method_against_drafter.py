"""The drafter was trained as one thing and is asked to draft as another."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check

EAGLE_WORDS: Final = ("EAGLE", "NEXTN")
FLAG: Final = {"sglang": "--speculative-algorithm", "vllm": '"method" in --speculative-config', "llamacpp": "--spec-type"}
OF_ENGINE: Final = {
    "vllm": {"EAGLE": "eagle", "EAGLE3": "eagle3", "NEXTN": "mtp", "STANDALONE": "draft_model", "DFLASH": "dflash"},
    "llamacpp": {"EAGLE3": "draft-eagle3", "STANDALONE": "draft-simple", "NEXTN": "draft-mtp", "DFLASH": "draft-dflash"},
}
NEEDED: Final = {"eagle1": "EAGLE", "eagle3": "EAGLE3", "mtp": "NEXTN", "plain": "STANDALONE", "dflash": "DFLASH"}
SUITE_WORDS: Final = {
    "EAGLE": "eagle",
    "EAGLE3": "eagle3",
    "NEXTN": "mtp",
    "STANDALONE": "draft_model",
    "DFLASH": "dflash",
    "NGRAM": "prompt_lookup",
}


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    asked, needed = facts.algorithm, NEEDED.get(facts.kind)
    if asked is None or needed is None or facts.draft is None or asked not in SUITE_WORDS:
        return
    if asked == needed or {asked, needed} == set(EAGLE_WORDS) or asked == "NGRAM":
        return
    if facts.kind == "plain" and asked in EAGLE_WORDS:  # a whole model whose own MTP layers draft
        return
    yield _finding(facts, asked, needed)


def _finding(facts: Facts, asked: str, needed: str) -> Finding:
    assert facts.draft is not None
    code = {"eagle3": "eagle3_drafter_needs_EAGLE3", "eagle1": "eagle1_drafter_needs_EAGLE"}
    name = ", ".join(facts.draft.architectures) or "its tensors"
    ours, theirs = _word(facts, asked), _word(facts, needed)
    flag = FLAG.get(facts.engine, FLAG["sglang"])
    return facts.say(
        code.get(facts.kind, "method_contradicts_drafter"),
        "error",
        f"The drafter is made for {theirs} and is asked to draft as {ours}: {_consequence(facts, asked)}",
        f"{facts.draft.name}: {name}; {flag} {ours}",
        f"Write `method: {SUITE_WORDS[needed]}` in the suite instead of `{SUITE_WORDS[asked]}` "
        f"(on the command line: {flag} {theirs}), or name a drafter that was trained for {ours}.",
    )


def _word(facts: Facts, algorithm: str) -> str:
    return OF_ENGINE.get(facts.engine, {}).get(algorithm, algorithm)


def _consequence(facts: Facts, asked: str) -> str:
    if facts.engine == "sglang" and facts.kind == "eagle3" and asked in EAGLE_WORDS:
        return (
            "SGLang starts without a complaint, withholds the three auxiliary hidden states it was trained on, and "
            "accepts nothing (acceptance length 1.00)."
        )
    if facts.engine == "llamacpp":
        return "llama.cpp logs one error line and then serves on without speculation."
    return "it gets other inputs than it was trained on; the server fails, or accepts next to nothing."


CHECK: Final[Check] = check
