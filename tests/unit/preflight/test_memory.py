"""Weights and KV against the GPUs, on shapes whose sizes are known."""

from typing import Any

import pytest

from specbench.checkpoints import Checkpoint
from specbench.preflight import Facts, Load
from specbench.preflight.checks import get
from specbench.preflight.checks.memory import _kv_token_bytes

GIB = 2**30
LLAMA = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
KIMI = {"num_hidden_layers": 61, "num_attention_heads": 64, "hidden_size": 7168, "kv_lora_rank": 512, "qk_rope_head_dim": 64}


def facts(weight_gib: float = 16, memory_gib: float = 80, streams: int = 8, tokens: int = 4096, words: str = "") -> Facts:
    return Facts(
        engine="sglang",
        argv=tuple(f"--model-path t {words}".split()),
        target=Checkpoint(name="t", config=LLAMA, weight_bytes=int(weight_gib * GIB)),
        load=Load(max_concurrency=streams, max_input_tokens=0, max_output_tokens=tokens),
        gpu_memory_bytes=int(memory_gib * GIB),
    )


def codes(one: Facts) -> dict[str, str]:
    return {found.code: found.severity for found in get("memory")(one)}


def test_a_token_of_a_llama_and_of_latent_attention() -> None:
    assert _kv_token_bytes(Checkpoint(name="l", config=LLAMA), 1) == 32 * 2 * 8 * 128 * 2
    assert _kv_token_bytes(Checkpoint(name="l", config=LLAMA), 4) == 32 * 2 * 2 * 128 * 2
    assert _kv_token_bytes(Checkpoint(name="l", config=LLAMA), 16) == 32 * 2 * 1 * 128 * 2
    assert _kv_token_bytes(Checkpoint(name="k", config=KIMI), 8) == 61 * 576 * 2


def test_what_fits_is_silent() -> None:
    assert codes(facts()) == {}


@pytest.mark.parametrize("change", [{"weight_gib": 90}, {"memory_gib": 18}])
def test_weights_that_do_not_fit_are_an_error(change: dict[str, Any]) -> None:
    assert codes(facts(**change)) == {"weights_exceed_memory": "error"}
    assert codes(facts(**change, words="--tp-size 2")) == {}


def test_a_load_that_does_not_fit_is_a_warning() -> None:
    crowded: dict[str, Any] = {"streams": 128, "tokens": 8192}  # 128 KiB a token: 128 GiB
    assert codes(facts(**crowded)) == {"load_exceeds_memory": "warning"}
    assert codes(facts(**crowded, words="--tp-size 4")) == {}
    assert codes(facts(streams=64, tokens=8192)) == {"load_exceeds_memory": "warning"}
    assert codes(facts(streams=64, tokens=8192, words="--kv-cache-dtype fp8_e5m2")) == {}


def test_what_is_not_known_keeps_it_silent() -> None:
    from msgspec.structs import replace

    assert codes(replace(facts(weight_gib=900), gpu_memory_bytes=None)) == {}
    assert codes(replace(facts(weight_gib=900), target=None)) == {}
    assert codes(replace(facts(), load=Load())) == {}
