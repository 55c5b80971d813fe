"""A method that needs a drafter has none, or the target lacks the layers that should draft."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check
from specbench.preflight.words import target_drafts

NEEDY: Final = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH")
FLAG: Final = {"sglang": "--speculative-draft-model-path", "vllm": '"model" in --speculative-config', "llamacpp": "-md"}


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    asked = facts.algorithm
    if facts.words.draft_path is None:
        if asked == "NEXTN":
            yield from _no_layers(facts)
        elif asked in NEEDY and not (asked == "EAGLE" and _may_draft_itself(facts)):
            yield _no_path(facts)


def _may_draft_itself(facts: Facts) -> bool:
    """EAGLE without a drafter means the target's own MTP layers; a target that could not be read may have them."""
    unread = facts.target is None or facts.target.config is None
    return unread or target_drafts(facts.target)


def _no_path(facts: Facts) -> Finding:
    flag = FLAG.get(facts.engine, FLAG["sglang"])
    return facts.say(
        "draft_path_missing",
        "error",
        f"{facts.algorithm} drafts with a checkpoint of its own, and none is named: {flag} is missing.",
        f"algorithm {facts.algorithm}, no drafter",
        f"Name a `drafter` in the variant's speculation ({flag} on the command line).",
    )


def _no_layers(facts: Facts) -> Iterable[Finding]:
    target = facts.target
    if target is None or target.config is None or target_drafts(target):
        return
    yield facts.say(
        "no_mtp_layers_in_target",
        "error",
        "NEXTN drafts with the target's own layers for multi-token prediction, and this target has none "
        "(num_nextn_predict_layers is 0 or not there).",
        f"{target.name}: num_nextn_predict_layers {target.text.get('num_nextn_predict_layers')}",
        "Take a drafter with `method: eagle3`, a checkpoint that kept its MTP layers, or prompt lookup.",
    )


CHECK: Final[Check] = check
