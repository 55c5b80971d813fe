"""Weights, drafter and the planned load's KV cache against the GPUs' memory: an estimate, silent where a part is unknown."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.checkpoints import Checkpoint
from specbench.preflight import Facts, of_workload
from specbench.preflight.checks import Check

VALUE_BYTES: Final = 2
"""Of a key or value in 16 bits."""
USUAL_STATIC_RATIO: Final = 0.88
"""Of a GPU, for weights and KV, where the command line says nothing; what is left is for activations and graphs."""
GIB: Final = 2**30


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    if facts.gpu_memory_bytes is None or facts.target is None or facts.target.weight_bytes is None:
        return
    parts = facts.words.tensor_parallel
    draft_bytes = (facts.draft.weight_bytes or 0) if facts.draft is not None else 0
    weights_bytes = (facts.target.weight_bytes + draft_bytes) / parts
    kv_bytes = _planned_kv_bytes(facts, parts)
    room_bytes = facts.gpu_memory_bytes * _static_ratio(facts)
    evidence = (
        f"a GPU: weights {weights_bytes / GIB:.1f} GiB, KV of the planned load {kv_bytes / GIB:.1f} GiB"
        f"{_shape(facts)}; "
        f"for both {room_bytes / GIB:.1f} of {facts.gpu_memory_bytes / GIB:.1f} GiB"
    )
    each = f"each of {parts} GPUs" if parts > 1 else "the GPU"
    if weights_bytes > room_bytes:
        yield facts.say(
            "weights_exceed_memory",
            "error",
            f"The weights do not fit: {each} would hold {weights_bytes / GIB:.1f} GiB.",
            evidence,
            "Raise `tensor_parallel`, or take a quantized checkpoint.",
        )
    elif weights_bytes + kv_bytes > room_bytes:
        yield facts.say(
            "load_exceeds_memory",
            "warning",
            "The KV cache of the planned load does not fit beside the weights: requests would wait or be retracted.",
            evidence,
            "Lower the concurrency or the lengths, raise `tensor_parallel`, or store the KV cache in 8 bits.",
        )


def _shape(facts: Facts) -> str:
    """Which streams and which sequence make the load."""
    load = facts.load
    if not load.busiest or not load.longest:
        return ""
    streams = f"{load.max_concurrency} streams{of_workload(load.busiest)}"
    return f" ({streams}, {load.longest_tokens} tokens{of_workload(load.longest)})"


def _static_ratio(facts: Facts) -> float:
    for name in ("mem-fraction-static", "gpu-memory-utilization"):
        try:
            return float(facts.words.flags.get(name, ""))
        except ValueError:
            continue
    return USUAL_STATIC_RATIO


def _planned_kv_bytes(facts: Facts, parts: int) -> float:
    """Of one GPU; 0 where the load or the model's shape is not known."""
    longest, streams = facts.load.longest_tokens, facts.load.max_concurrency
    if longest is None or streams is None or facts.target is None:
        return 0.0
    eight_bits = "fp8" in facts.words.flags.get("kv-cache-dtype", "")
    return _kv_token_bytes(facts.target, parts) * (0.5 if eight_bits else 1.0) * longest * streams


def _kv_token_bytes(target: Checkpoint, parts: int) -> float:
    """Of one token on one GPU. Latent attention keeps one vector for all heads, on each GPU."""
    layers = target.layer_count or 0
    latent = target.integer("kv_lora_rank")
    if latent:
        return layers * (latent + (target.integer("qk_rope_head_dim") or 0)) * VALUE_BYTES
    heads = target.integer("num_attention_heads") or 0
    width = target.integer("head_dim") or (target.hidden_width or 0) // max(1, heads)
    kept = target.integer("num_key_value_heads") or heads
    return layers * 2 * max(1.0, kept / parts) * width * VALUE_BYTES


CHECK: Final[Check] = check
