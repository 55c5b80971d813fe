"""Preflight on real files: the tiny models that `.ci/run vllm` makes. Skipped with the reason where they were never made."""

import json
from pathlib import Path
from typing import Any, Final

import numpy
import pytest

from specbench import engines
from specbench.checkpoints import Checkpoint
from specbench.checkpoints.read import read_checkpoint
from specbench.checkpoints.weights import read_weights
from specbench.engines import Launch
from specbench.plan import Slot
from specbench.preflight import Facts, find
from specbench.suite import Drafter, Method, Model, Server, Speculation, Variant
from tests.realengine.make import DRAFT_ROWS, HIDDEN, INNER, LAYERS, TWICE, models_folder

FOLDER: Final = models_folder()
HEADS: Final = HIDDEN
"""Heads times their width, as wide as the hidden state."""
VOCABULARY_COUNT: Final = 288
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the tiny models were not made on this machine: `.ci/run vllm` makes them"
)


def checkpoint(name: str) -> Checkpoint:
    return read_checkpoint(str(FOLDER / name))


def codes(engine: str, method: Method, drafter: str) -> set[str]:
    """Errors of a launch on the real files."""
    variant = Variant(
        name="v", engine=engine, speculation=Speculation(method=method, drafter="d", draft_tokens=4), server=Server()
    )
    version = {"vllm": "0.32.0", "sglang": "0.5.23"}[engine]
    target = Model(path=str(FOLDER / "target"))
    launch = Launch(
        model=target, drafter=Drafter(path=str(FOLDER / drafter)), variant=variant, slot=Slot(port=1), version=version
    )
    facts = Facts(
        engine=engine,
        version=version,
        argv=engines.get(engine).command(launch).argv,
        target=checkpoint("target"),
        draft=checkpoint(drafter),
    )
    return {one.code for one in find(facts) if one.severity == "error"}


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("method", "drafter", "expected"),
    [
        ("eagle3", "eagle3", set()),
        ("eagle3", "eagle3-untrained", set()),
        ("draft_model", "draft", set()),
        ("draft_model", "copy", set()),
        ("eagle3", "eagle3-wrong-width", {"fc_width_mismatch"}),
        ("eagle3", "eagle3-two-states", {"auxiliary_layers_repeated"}),
        ("eagle3", "eagle3-no-head", {"missing_lm_head"}),
        ("eagle", "eagle3", {"eagle3_drafter_needs_EAGLE3"}),
    ],
)
def test_faults_are_found_in_real_files(engine: str, method: Method, drafter: str, expected: set[str]) -> None:
    assert codes(engine, method, drafter) == expected


def test_names_and_shapes_are_those_that_sglang_and_vllm_load() -> None:
    head = checkpoint("eagle3")
    assert head.architectures == ("LlamaForCausalLMEagle3",)
    assert head.draft_vocabulary_count == DRAFT_ROWS
    assert head.tensors == {
        "fc.weight": (HIDDEN, 3 * HIDDEN),
        "midlayer.self_attn.q_proj.weight": (HEADS, 2 * HIDDEN),
        "midlayer.self_attn.k_proj.weight": (HEADS, 2 * HIDDEN),
        "midlayer.self_attn.v_proj.weight": (HEADS, 2 * HIDDEN),
        "midlayer.self_attn.o_proj.weight": (HIDDEN, HEADS),
        "midlayer.mlp.gate_proj.weight": (INNER, HIDDEN),
        "midlayer.mlp.up_proj.weight": (INNER, HIDDEN),
        "midlayer.mlp.down_proj.weight": (HIDDEN, INNER),
        "midlayer.input_layernorm.weight": (HIDDEN,),
        "midlayer.hidden_norm.weight": (HIDDEN,),
        "midlayer.post_attention_layernorm.weight": (HIDDEN,),
        "norm.weight": (HIDDEN,),
        "lm_head.weight": (DRAFT_ROWS, HIDDEN),
        "d2t": (DRAFT_ROWS,),
        "t2d": (VOCABULARY_COUNT,),
    }


def test_what_sglang_reads_of_the_configuration() -> None:
    """One layer, the width of the target's states, the rows of lm_head; no layer ids, so each engine takes its default."""
    config = json.loads((FOLDER / "eagle3" / "config.json").read_text(encoding="utf-8"))
    read = (
        "num_hidden_layers",
        "hidden_size",
        "target_hidden_size",
        "vocab_size",
        "draft_vocab_size",
        "tie_word_embeddings",
    )
    assert [config[name] for name in read] == [1, HIDDEN, HIDDEN, VOCABULARY_COUNT, DRAFT_ROWS, False]
    assert "eagle_config" not in config
    assert checkpoint("eagle3-two-states").auxiliary_layer_ids == TWICE


def test_the_draft_vocabulary_is_offsets_from_draft_id_to_target_id() -> None:
    """SGLang and vLLM add a draft id to its entry in d2t; t2d marks the target ids that come out, and SGLang skips it."""
    offsets, mask = array("eagle3", "d2t", "<i8"), array("eagle3", "t2d", "?")
    ids = offsets + numpy.arange(DRAFT_ROWS)
    assert (numpy.diff(ids) > 0).all()
    assert numpy.flatnonzero(mask).tolist() == ids.tolist()


def array(name: str, tensor: str, kind: str) -> Any:
    """Of a safetensors file: the length of its header, the header, the tensors."""
    raw = (FOLDER / name / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    begin, end = json.loads(raw[8 : 8 + length])[tensor]["data_offsets"]
    return numpy.frombuffer(raw[8 + length + begin : 8 + length + end], dtype=kind)


def test_the_target_has_layers_enough_for_three_states() -> None:
    target = checkpoint("target")
    assert target.layer_count == LAYERS >= 8
    assert target.shape("lm_head.weight") == (VOCABULARY_COUNT, HIDDEN)


def test_trained_weights_are_numbers() -> None:
    found = read_weights(Path(FOLDER) / "eagle3")
    assert {one.name for one in found} == {"fc.weight", "lm_head.weight"}
    assert all(one.bad_count == 0 and one.deviation > 0 and not one.unknown for one in found)
