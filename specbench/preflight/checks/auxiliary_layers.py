"""The layers of the target that an EAGLE-3 drafter reads; SGLang's versions treat them and Kimi-K2.5 differently."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check

KIMI: Final = "KimiK25ForConditionalGeneration"
DEEPSEEK: Final = ("DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", KIMI)


def check(facts: Facts) -> Iterable[Finding]:
    """Only for EAGLE3; most of it under a known version of SGLang."""
    if facts.drafts_by_eagle3:
        yield from _repeated(facts)
    if facts.engine != "sglang" or facts.algorithm != "EAGLE3" or facts.target is None or facts.release is None:
        return
    if KIMI in facts.target.architectures and facts.before("0.5.10"):
        yield facts.say(
            "eagle3_needs_newer_engine",
            "error",
            f"EAGLE-3 for Kimi-K2.5 exists from SGLang 0.5.10 on; this is {facts.version}: the launch fails.",
            f"target {KIMI}, SGLang {facts.version}",
            "Install SGLang 0.5.10 or newer.",
        )
        return
    yield from _layers(facts)


def _repeated(facts: Facts) -> Iterable[Finding]:
    assert facts.draft is not None
    ids = facts.draft.auxiliary_layer_ids
    different = len(set(ids))
    if different < len(ids):
        yield facts.say(
            "auxiliary_layers_repeated",
            "error",
            f"The drafter names the layers {list(ids)}: one named twice is handed over once, {different} states where fc "
            f"takes {len(ids)}. The server says that it is ready and dies of a matrix shape on the first request.",
            f"{facts.draft.name}: eagle_aux_hidden_state_layer_ids {list(ids)}",
            "Put the layers that the drafter was trained on into `eagle_config.eagle_aux_hidden_state_layer_ids`, or leave "
            "them out.",
        )


def _layers(facts: Facts) -> Iterable[Finding]:
    if facts.target is None or facts.draft is None:
        return
    ids, count = facts.draft.auxiliary_layer_ids, facts.target.layer_count
    if not ids or count is None:
        return
    if any(not 0 <= one < count for one in ids):
        yield _outside(facts, ids, count)
        return
    usual = (2, count // 2, count - 3)
    if ids != usual and facts.since("0.4.9") and facts.before("0.5.11") and not facts.words.has("disable-cuda-graph"):
        yield facts.say(
            "auxiliary_layers_overwritten",
            "warning",
            f"SGLang {facts.version} replaces the drafter's layers {list(ids)} by {list(usual)} when it captures graphs.",
            f"layers {list(ids)}, SGLang 0.4.9 to 0.5.10.post1",
            "Install SGLang 0.5.11 or newer, or run this drafter without CUDA graphs.",
        )
    elif (
        ids[0] != 1 and set(facts.target.architectures) & set(DEEPSEEK) and facts.since("0.5.11") and facts.before("0.5.13")
    ):
        yield facts.say(
            "auxiliary_layers_shifted",
            "warning",
            f"SGLang {facts.version} reads the layers {[one + 1 for one in ids]} where the drafter names {list(ids)}; "
            "from 0.5.13 on it reads them as named.",
            f"first layer {ids[0]}, target {facts.target.architectures[-1]}",
            "Install the version that the drafter was trained against.",
        )


def _outside(facts: Facts, ids: tuple[int, ...], count: int) -> Finding:
    return facts.say(
        "auxiliary_layers_outside",
        "error",
        f"The drafter reads the layers {list(ids)}, and the target has {count}, counted from 0.",
        f"layers {list(ids)} of {count}",
        "The drafter belongs to a larger model: take the one that was trained for this target.",
    )


CHECK: Final[Check] = check
