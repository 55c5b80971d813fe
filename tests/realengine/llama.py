"""A Llama in plain torch, as functions of its named weights: what a trainer needs, and no more.

Weights are called as Hugging Face calls them, so that a dictionary of them is a checkpoint. Shapes: B sequences, T tokens,
H hidden width, D head width.
"""

import math
from typing import Any, Final

import torch
from torch.nn import functional

VOCABULARY_COUNT: Final = 288
"""256 bytes, three special tokens, rounded up to a multiple of 32."""
SPECIAL: Final = ("<s>", "</s>", "<pad>")
"""Ids from 256 on. None of them is in the training text, so a greedy answer runs to its token limit."""
HEAD_COUNT: Final = 4
HEAD_WIDTH: Final = 32
"""The same in all models: one page size of the KV cache then suits target and drafter."""
ROPE_BASE: Final = 10_000.0
EPSILON: Final = 1e-5

Weights = dict[str, Any]
"""Tensor by name."""


def matrix(generator: Any, rows: int, columns: int, scale: float = 1.0) -> Any:
    """Normal, of deviation `scale / sqrt(columns)`."""
    return torch.randn(rows, columns, generator=generator) * (scale / math.sqrt(columns))


def layer_weights(generator: Any, prefix: str, hidden: int, inner: int, input_width: int | None = None) -> Weights:
    """One decoder layer; an EAGLE-3 layer attends from twice the hidden width."""
    width, heads = input_width or hidden, HEAD_COUNT * HEAD_WIDTH
    found = {f"{prefix}.self_attn.{one}_proj.weight": matrix(generator, heads, width) for one in ("q", "k", "v")}
    return found | {
        f"{prefix}.self_attn.o_proj.weight": matrix(generator, hidden, heads, 0.3),
        f"{prefix}.mlp.gate_proj.weight": matrix(generator, inner, hidden),
        f"{prefix}.mlp.up_proj.weight": matrix(generator, inner, hidden),
        f"{prefix}.mlp.down_proj.weight": matrix(generator, hidden, inner, 0.3),
        f"{prefix}.input_layernorm.weight": torch.ones(hidden),
        f"{prefix}.post_attention_layernorm.weight": torch.ones(hidden),
    }


def llama_weights(seed: int, layers: int, hidden: int, inner: int) -> Weights:
    """Untrained."""
    generator = torch.Generator().manual_seed(seed)
    found: Weights = {"model.embed_tokens.weight": matrix(generator, VOCABULARY_COUNT, hidden, math.sqrt(hidden))}
    for index in range(layers):
        found |= layer_weights(generator, f"model.layers.{index}", hidden, inner)
    found["model.norm.weight"] = torch.ones(hidden)
    found["lm_head.weight"] = matrix(generator, VOCABULARY_COUNT, hidden)
    return found


def normed(states: Any, weight: Any) -> Any:
    """RMS norm."""
    return states * torch.rsqrt(states.square().mean(-1, keepdim=True) + EPSILON) * weight


def rotated(heads: Any, first_position: int = 0) -> Any:
    """Rotary positions on [B, heads, T, D], halves paired as Hugging Face pairs them."""
    length = heads.shape[-2]
    places = torch.arange(first_position, first_position + length, dtype=torch.float32)
    angles = places[:, None] * ROPE_BASE ** (-torch.arange(0, HEAD_WIDTH, 2, dtype=torch.float32) / HEAD_WIDTH)
    cosine, sine = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    low, high = heads.chunk(2, dim=-1)
    return heads * cosine + torch.cat((-high, low), dim=-1) * sine


def projected(weights: Weights, prefix: str, states: Any, first_position: int = 0) -> tuple[Any, Any, Any]:
    """Queries, keys and values, [B, heads, T, D], positions rotated in."""
    batch, length, _ = states.shape
    parts = (functional.linear(states, weights[f"{prefix}.self_attn.{one}_proj.weight"]) for one in ("q", "k", "v"))
    query, key, value = (one.view(batch, length, HEAD_COUNT, HEAD_WIDTH).transpose(1, 2) for one in parts)
    return rotated(query, first_position), rotated(key, first_position), value


def merged(weights: Weights, prefix: str, heads: Any) -> Any:
    """Heads back to the hidden width."""
    batch, _, length, _ = heads.shape
    flat = heads.transpose(1, 2).reshape(batch, length, HEAD_COUNT * HEAD_WIDTH)
    return functional.linear(flat, weights[f"{prefix}.self_attn.o_proj.weight"])


def perceived(weights: Weights, prefix: str, states: Any) -> Any:
    """The layer's MLP with its residual."""
    inside = normed(states, weights[f"{prefix}.post_attention_layernorm.weight"])
    gate = functional.silu(functional.linear(inside, weights[f"{prefix}.mlp.gate_proj.weight"]))
    grown = gate * functional.linear(inside, weights[f"{prefix}.mlp.up_proj.weight"])
    return states + functional.linear(grown, weights[f"{prefix}.mlp.down_proj.weight"])


def layer(weights: Weights, prefix: str, states: Any) -> Any:
    """[B, T, H] to [B, T, H], causal."""
    inside = normed(states, weights[f"{prefix}.input_layernorm.weight"])
    query, key, value = projected(weights, prefix, inside)
    heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return perceived(weights, prefix, states + merged(weights, prefix, heads))


def layer_count(weights: Weights) -> int:
    return sum(name.endswith(".self_attn.o_proj.weight") for name in weights)


def logits(weights: Weights, tokens: Any, auxiliary: tuple[int, ...] = ()) -> tuple[Any, Any]:
    """Logits [B, T, V], and the inputs of the layers named, side by side, [B, T, n·H]: what an EAGLE-3 head is given."""
    states = functional.embedding(tokens, weights["model.embed_tokens.weight"])
    seen = []
    for index in range(layer_count(weights)):
        if index in auxiliary:
            seen.append(states)
        states = layer(weights, f"model.layers.{index}", states)
    out = functional.linear(normed(states, weights["model.norm.weight"]), weights["lm_head.weight"])
    return out, torch.cat(seen, dim=-1) if seen else None
