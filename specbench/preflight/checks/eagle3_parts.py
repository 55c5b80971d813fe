"""An EAGLE-3 drafter's own parts: fc, lm_head and the two vocabulary maps."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check

SILENT: Final = "SGLang skips a missing weight without an error and drafts with whatever the memory held."


def check(facts: Facts) -> Iterable[Finding]:
    """Only with readable tensors: none is guessed."""
    if not facts.drafts_by_eagle3 or facts.draft is None or not facts.draft.tensors:
        return
    yield from _fc(facts)
    yield from _head(facts)
    yield from _maps(facts)


def _fc(facts: Facts) -> Iterable[Finding]:
    assert facts.draft is not None
    text, count = facts.draft.text, facts.draft.auxiliary_layer_count
    inner = text.get("eagle_config")
    if isinstance(inner, dict) and inner.get("use_aux_hidden_state") is False:
        return
    width = text.get("target_hidden_size") or (facts.target and facts.target.hidden_width) or facts.draft.hidden_width
    shape = facts.draft.shape("fc.weight")
    if not isinstance(width, int):
        return
    wanted = f"{count} auxiliary layers × target width {width} = {count * width}"
    if shape is None:
        yield facts.say(
            "missing_fc",
            "error",
            f"The EAGLE-3 drafter has no fc.weight, which should join {count * width} values a token. {SILENT}",
            f"{facts.draft.name}: no fc.weight among {len(facts.draft.tensors or ())} tensors; {wanted}",
            "Export the drafter again with its fc layer; look whether the training checkpoint calls it otherwise.",
        )
    elif len(shape) == 2 and shape[1] != count * width and _same_width(facts):
        yield facts.say(
            "fc_width_mismatch",
            "error",
            f"fc.weight takes {shape[1]} values a token, and the target gives {count * width}: the server dies with a "
            "matrix shape error at graph capture or at the first request.",
            f"{facts.draft.name}: fc.weight {list(shape)}; {wanted}",
            "Put the layers that the drafter was trained on into `eagle_config.eagle_aux_hidden_state_layer_ids`, "
            "or take the drafter that belongs to this target.",
        )


def _same_width(facts: Facts) -> bool:
    """Otherwise `hidden_size_mismatch` says it already."""
    if facts.draft is None or facts.target is None or facts.target.hidden_width is None:
        return True
    stated = facts.draft.text.get("target_hidden_size") or facts.draft.hidden_width
    return stated in (None, facts.target.hidden_width)


def _head(facts: Facts) -> Iterable[Finding]:
    draft = facts.draft
    assert draft is not None
    rows, shape = draft.draft_vocabulary_count, draft.shape("lm_head.weight")
    if rows is None or draft.text.get("tie_word_embeddings") is True:
        return
    if shape is None:
        yield facts.say(
            "missing_lm_head",
            "error",
            f"The drafter names a vocabulary of its own ({rows} tokens) and has no lm_head.weight for it. {SILENT}",
            f"{draft.name}: draft_vocab_size {rows}, no lm_head.weight",
            f"Export the drafter again with lm_head.weight [{rows}, {draft.hidden_width}]. Only without `draft_vocab_size` "
            "does the server take the target's head.",
        )
    elif shape[0] != rows:
        yield _bad_shape(facts, "lm_head.weight", shape, (rows, draft.hidden_width or shape[-1]))


def _maps(facts: Facts) -> Iterable[Finding]:
    draft = facts.draft
    assert draft is not None
    small, whole = draft.draft_vocabulary_count, draft.vocabulary_count
    if small is None or whole is None:
        return
    for name, length in (("d2t", small), ("t2d", whole)):
        shape = draft.shape(name)
        if shape is not None and shape != (length,):
            yield _bad_shape(facts, name, shape, (length,))
    if draft.shape("d2t") is None and small < whole:
        yield facts.say(
            "missing_d2t",
            "error",
            f"The drafter's {small} tokens are not mapped to the target's {whole}: d2t is missing, so every proposal is "
            "taken for another token.",
            f"{draft.name}: draft_vocab_size {small}, vocab_size {whole}, no d2t",
            f"Export the drafter again with d2t [{small}].",
        )


def _bad_shape(facts: Facts, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Finding:
    assert facts.draft is not None
    return facts.say(
        "vocabulary_map_shape",
        "error",
        f"{name} has the shape {list(shape)} and should have {list(wanted)}.",
        f"{facts.draft.name}: draft_vocab_size {facts.draft.draft_vocabulary_count}, "
        f"vocab_size {facts.draft.vocabulary_count}",
        "Export the drafter again, or put the sizes in its config.json right.",
    )


CHECK: Final[Check] = check
