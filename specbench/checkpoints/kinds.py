"""What a drafter was trained as, inferred from its checkpoint alone."""

from typing import Final, Literal

from specbench.checkpoints import Checkpoint

Kind = Literal["eagle1", "eagle3", "mtp", "dflash", "plain", "unknown"]

WORDS: Final[dict[Kind, str]] = {
    "eagle1": "an EAGLE drafter of the first kind",
    "eagle3": "an EAGLE-3 drafter",
    "mtp": "a multi-token-prediction layer",
    "dflash": "a DFlash drafter",
    "plain": "a model of its own",
    "unknown": "of an unknown kind",
}
MARKS: Final[tuple[tuple[str, Kind], ...]] = (
    ("eagle3", "eagle3"),
    ("dflash", "dflash"),
    ("eagle", "eagle1"),
    ("nextn", "mtp"),
    ("mtp", "mtp"),
)
"""In the names of architectures, the telling ones first."""
ORDINARY: Final = ("ForCausalLM", "ForConditionalGeneration")


def kind_of(drafter: Checkpoint) -> Kind:
    """By the architecture's name; where that says nothing, by the tensors."""
    family = drafter.config.get("model_type") if drafter.config and drafter.format == "gguf" else None
    for name in (*drafter.architectures, *((str(family),) if family else ())):
        plain_name = name.lower().replace("_", "").replace("-", "")
        for mark, kind in MARKS:
            if mark in plain_name:
                return kind
    found = _by_tensors(drafter)
    if found == "unknown" and drafter.config is not None:
        return _by_config(drafter)
    return found


def _by_tensors(drafter: Checkpoint) -> Kind:
    if not drafter.tensors:
        return "unknown"
    if any(name.endswith(("eh_proj.weight", "enorm.weight")) for name in drafter.tensors):
        return "unknown" if drafter.layer_count and drafter.layer_count > 1 else "mtp"
    if {"d2t", "t2d"} & set(drafter.tensors) or any("midlayer." in name for name in drafter.tensors):
        return "eagle3"
    fc = drafter.shape("fc.weight")
    if fc is not None and len(fc) == 2:
        return "eagle1" if fc[1] == 2 * fc[0] else "eagle3" if fc[1] == 3 * fc[0] else "unknown"
    return "unknown"


def _by_config(drafter: Checkpoint) -> Kind:
    text = drafter.text
    if "eagle_config" in text or text.get("draft_vocab_size") is not None:
        return "eagle3"
    if "dflash_config" in text or ("block_size" in text and "target_layer_ids" in text):
        return "dflash"
    several = (drafter.layer_count or 0) > 1
    ordinary = any(name.endswith(ORDINARY) for name in drafter.architectures)
    return "plain" if several and (ordinary or drafter.format == "gguf") else "unknown"
