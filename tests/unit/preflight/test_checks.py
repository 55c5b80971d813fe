"""Each check on a pairing that is healthy but for one thing."""

import ast
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from specbench.checkpoints import Checkpoint
from specbench.checkpoints.kinds import kind_of
from specbench.preflight import Facts, Load, as_json, checks, find
from specbench.preflight.suites import UNREADABLE

ROOT: Final = Path(__file__).parents[3]
H: Final = 4096
TENSORS: Final = {
    "fc.weight": (H, 3 * H),
    "midlayer.hidden_norm.weight": (H,),
    "lm_head.weight": (32000, H),
    "d2t": (32000,),
    "t2d": (128256,),
}
TARGET: Final[dict[str, Any]] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": H,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}
DRAFT: Final[dict[str, Any]] = {
    **TARGET,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
}


def numbers(steps: int, topk: int, tokens: int) -> str:
    return f"--speculative-num-steps {steps} --speculative-eagle-topk {topk} --speculative-num-draft-tokens {tokens}"


CHAIN: Final = numbers(3, 1, 4)


def facts(
    words: str = CHAIN,
    *,
    algorithm: str = "EAGLE3",
    draft: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    tensors: dict[str, tuple[int, ...]] | None = None,
    version: str = "0.5.16",
    env: dict[str, str] | None = None,
    load: Load | None = None,
) -> Facts:
    argv = f"--model-path t --speculative-algorithm {algorithm} --speculative-draft-model-path d {words}"
    return Facts(
        engine="sglang",
        version=version,
        argv=tuple(argv.split()),
        env=env or {},
        target=Checkpoint(name="t", config={**TARGET, **(target or {})}),
        draft=Checkpoint(name="d", config={**DRAFT, **(draft or {})}, tensors=TENSORS if tensors is None else tensors),
        load=load or Load(max_concurrency=16, max_input_tokens=512, max_output_tokens=256),
    )


def codes(one: Facts) -> dict[str, str]:
    return {found.code: found.severity for found in find(one)}


def without(name: str) -> dict[str, tuple[int, ...]]:
    return {key: shape for key, shape in TENSORS.items() if key != name}


def test_a_healthy_pairing_is_silent() -> None:
    assert find(facts()) == ()
    assert facts().effective_draft_tokens == 4


TREE: Final = numbers(3, 4, 8)
MLA: Final = {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}
KIMI: Final = {"architectures": ["KimiK25ForConditionalGeneration"]}
HEADLESS: Final = {"fc.weight": (H, 3 * H), "midlayer.hidden_norm.weight": (H,)}
PLAIN: Final = {"architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 28, "draft_vocab_size": None}
DEEPSEEK: Final = {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61}


def layers(*ids: int) -> dict[str, Any]:
    return {"eagle_config": {"eagle_aux_hidden_state_layer_ids": list(ids)}}


@pytest.mark.parametrize(
    ("one", "code", "severity"),
    [
        (facts(algorithm="EAGLE"), "eagle3_drafter_needs_EAGLE3", "error"),
        (facts(algorithm="STANDALONE"), "eagle3_drafter_needs_EAGLE3", "error"),
        (facts(algorithm="eagle"), "eagle3_drafter_needs_EAGLE3", "error"),
        (facts(algorithm="EAGLE", draft=MLA), "eagle3_drafter_needs_EAGLE3", "error"),
        (facts(draft={"architectures": ["LlamaForCausalLMEagle"]}), "eagle1_drafter_needs_EAGLE", "error"),
        (facts(draft=PLAIN, tensors={}), "method_contradicts_drafter", "error"),
        (facts(tensors=without("fc.weight")), "missing_fc", "error"),
        (facts(tensors={**TENSORS, "fc.weight": (H, 2 * H)}), "fc_width_mismatch", "error"),
        (facts(tensors=without("lm_head.weight")), "missing_lm_head", "error"),
        (facts(tensors=without("d2t")), "missing_d2t", "error"),
        (facts(tensors={**TENSORS, "t2d": (32000,)}), "vocabulary_map_shape", "error"),
        (facts(draft={"hidden_size": 2048}), "hidden_size_mismatch", "error"),
        (facts(draft={"vocab_size": 151936}), "vocab_mismatch", "error"),
        (facts(draft={"max_position_embeddings": 2048}), "draft_context_too_short", "error"),
        (facts(draft={"max_position_embeddings": 2048}, version="0.4.6.post5"), "draft_context_too_short", "warning"),
        (facts(numbers(6, 1, 5)), "draft_tokens_inconsistent", "warning"),
        (facts("--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"), "draft_tokens_inconsistent", "error"),
        (facts(numbers(1, 2, 8)), "draft_tokens_inconsistent", "error"),
        (facts(f"{TREE} --page-size 64 --attention-backend flashmla"), "topk_unsupported_by_backend", "error"),
        (facts(f"{TREE} --attention-backend trtllm_mha"), "topk_unsupported_by_backend", "error"),
        (facts(f"{TREE} --page-size 64"), "topk_unsupported_by_backend", "warning"),
        (facts(f"{CHAIN} --cuda-graph-max-bs 8"), "graph_max_bs_below_concurrency", "warning"),
        (facts(f"{CHAIN} --cuda-graph-bs 1 2 4"), "graph_max_bs_below_concurrency", "warning"),
        (facts(f"{CHAIN} --max-running-requests 8"), "max_running_below_concurrency", "warning"),
        (facts(load=Load(max_concurrency=64)), "max_running_below_concurrency", "warning"),
        (facts(draft=layers(2, 30, 58)), "auxiliary_layers_outside", "error"),
        (facts(draft=layers(2, 16, 16)), "auxiliary_layers_repeated", "error"),
        (facts(draft=layers(1, 15, 28), version="0.5.8"), "auxiliary_layers_overwritten", "warning"),
        (facts(draft=layers(2, 30, 58), target=DEEPSEEK, version="0.5.12"), "auxiliary_layers_shifted", "warning"),
        (facts(target=KIMI, version="0.5.9"), "eagle3_needs_newer_engine", "error"),
        (facts(f"{CHAIN} --tp-size 5"), "tensor_parallel_heads", "error"),
        (facts(f"{CHAIN} --log-level warning"), "log_level_hides_acceptance", "warning"),
        (facts(load=Load(fewest_steps_count=12)), "decode_interval_too_long", "warning"),
        (facts(load=Load(random_prompts=True)), "random_prompts_with_acceptance", "warning"),
        (facts(load=Load(ignore_eos=True)), "ignore_eos_with_acceptance", "warning"),
        (facts(env={"SGLANG_SIMULATE_ACC_LEN": "3"}), "faked_acceptance", "error"),
        (facts(f"{CHAIN} --enable-dp-attention", algorithm="STANDALONE"), "data_parallel_attention_refused", "error"),
        (facts(target={"auto_map": {"AutoModel": "x"}}), "trust_remote_code_missing", "warning"),
        (facts(f"{CHAIN} --cuda-graph-max-bs 16", version="0.5.23"), "flag_unknown_to_engine", "warning"),
    ],
)
def test_one_fault_is_found(one: Facts, code: str, severity: str) -> None:
    assert codes(one).get(code) == severity


@pytest.mark.parametrize(
    "one",
    [
        facts(draft={"draft_vocab_size": None}, tensors=HEADLESS),
        facts(draft={"tie_word_embeddings": True}, tensors=without("lm_head.weight")),
        facts(f"{CHAIN} --context-length 2048", draft={"max_position_embeddings": 2048}),
        facts(draft={"max_position_embeddings": 2048, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
        facts(f"{TREE} --page-size 64 --attention-backend fa3"),
        facts(f"{CHAIN} --cuda-graph-max-bs 8 --disable-cuda-graph"),
        facts(draft=layers(2, 30, 58), target=DEEPSEEK, version="0.5.13"),
        replace(facts(), draft=Checkpoint(name="d", unknown="offline")),
        replace(facts(), target=None),
    ],
)
def test_silence_is_kept(one: Facts) -> None:
    assert find(one) == ()


def test_without_a_drafter() -> None:
    alone = ("--speculative-algorithm", "EAGLE")
    own = replace(facts(), argv=alone, draft=None)
    assert codes(own) == {"draft_path_missing": "error"}
    assert codes(replace(own, target=Checkpoint(name="t", unknown="offline"))) == {}
    assert codes(replace(own, target=Checkpoint(name="t", config={**TARGET, "num_nextn_predict_layers": 1}))) == {}
    assert codes(replace(own, argv=("--speculative-algorithm", "NEXTN"))) == {"no_mtp_layers_in_target": "error"}


def test_llamacpp_and_vllm() -> None:
    plain = Checkpoint(name="d.gguf", config={"model_type": "llama", "num_hidden_layers": 22}, format="gguf")
    assert kind_of(plain) == "plain"
    silent = Facts(engine="llamacpp", argv=("llama-server", "-m", "t.gguf", "-md", "d.gguf"), draft=plain)
    assert codes(silent) == {"draft_model_without_spec_type": "error"}
    assert codes(replace(silent, argv=(*silent.argv, "--spec-type", "draft-simple"))) == {}
    assert codes(replace(silent, argv=(*silent.argv, "--spec-type", "draft-eagle3"))) == {
        "method_contradicts_drafter": "error"
    }
    config = json.dumps({"method": "eagle", "model": "d", "num_speculative_tokens": 3})
    vllm = replace(facts(), engine="vllm", argv=("--speculative-config", config))
    assert codes(vllm) == {"eagle3_drafter_needs_EAGLE3": "error"}
    assert vllm.effective_draft_tokens == 4


def test_guessed_draft_tokens() -> None:
    assert facts("").effective_draft_tokens == 8
    assert facts("", target=DEEPSEEK).effective_draft_tokens == 4


def test_a_flag_that_no_version_knows_is_told_with_the_nearest() -> None:
    found = [
        one for one in find(facts(f"{CHAIN} --cuda-graph-maxbs 8 --frobnicate")) if one.code == "flag_unknown_to_engine"
    ]
    assert [one.severity for one in found] == ["warning", "warning"]
    assert found[0].remedy == "Write --cuda-graph-max-bs."
    assert "No SGLang up to 0.5.23 knows --frobnicate" in found[1].message
    assert not [one for one in find(facts(f"{CHAIN} --tp 2 --dtype=auto")) if one.code == "flag_unknown_to_engine"]


def emitted() -> set[str]:
    """First arguments of `facts.say`, and names of codes kept in constants."""
    found = {"eagle3_drafter_needs_EAGLE3", "eagle1_drafter_needs_EAGLE", "method_contradicts_drafter", "no_command"}
    found |= {UNREADABLE}
    for name in checks.names():
        text = (Path(str(checks.__file__)).parent / f"{name}.py").read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "say":
                first = node.args[0]
                found |= {first.value} if isinstance(first, ast.Constant) and isinstance(first.value, str) else set()
        found |= set(re.findall(r'^CODE: Final = "(\w+)"', text, flags=re.MULTILINE))
    return found


def test_every_code_has_its_story() -> None:
    told = set(re.findall(r"^### (\w+)$", (ROOT / "docs/checks.md").read_text(), flags=re.MULTILINE))
    assert told == emitted()


def test_json_names_the_page() -> None:
    (listed,) = json.loads(as_json(find(facts(algorithm="EAGLE"))))
    assert listed["page"] == "docs/checks.md#eagle3_drafter_needs_EAGLE3"
    assert {"code", "severity", "evidence", "remedy", "message"} <= set(listed)
