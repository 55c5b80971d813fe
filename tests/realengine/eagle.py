"""An EAGLE-3 head: what it is given, how it is unrolled over its own drafts, and how many of them a target accepts.

At position i the head is given the embedding of token i + 1 and three of the target's hidden states at i, and proposes
token i + 2. Its next step is given its own state instead of the target's. Shapes as in `llama`.
"""

import math
from typing import Any, Final

import torch
from torch.nn import functional

from tests.realengine import llama
from tests.realengine.llama import Weights, normed

LAYER: Final = "midlayer"
AUXILIARY_COUNT: Final = 3


def auxiliary_layers(layers: int) -> tuple[int, int, int]:
    """vLLM's and SGLang's default where the configuration names none: the inputs of these layers."""
    return (2, layers // 2, layers - 3)


def head_weights(seed: int, hidden: int, inner: int, draft_rows: int, fc_width: int) -> Weights:
    """Untrained. `fc_width`: of the target's states side by side."""
    generator = torch.Generator().manual_seed(seed)
    found: Weights = {"fc.weight": llama.matrix(generator, hidden, fc_width)}
    found |= llama.layer_weights(generator, LAYER, hidden, inner, input_width=2 * hidden)
    found[f"{LAYER}.hidden_norm.weight"] = torch.ones(hidden)
    found["norm.weight"] = torch.ones(hidden)
    found["lm_head.weight"] = llama.matrix(generator, draft_rows, hidden)
    return found


def unrolled(head: Weights, embeddings: Any, seen: Any, depth: int) -> list[Any]:
    """Logits of each draft step, [B, T, draft rows]; step s at place j stands at position j + s.

    `embeddings` [B, T + depth - 1, H] are those of tokens 1, 2, …; `seen` [B, T, 3H] the target's states at 0, 1, ….
    A step attends to the first step's entries up to its own place and, beyond, to those of the steps between.
    """
    states, length = functional.linear(seen, head["fc.weight"]), seen.shape[1]
    keys: list[Any] = []
    values: list[Any] = []
    found = []
    for step in range(depth):
        inside = torch.cat(
            (
                normed(embeddings[:, step : step + length], head[f"{LAYER}.input_layernorm.weight"]),
                normed(states, head[f"{LAYER}.hidden_norm.weight"]),
            ),
            dim=-1,
        )
        query, key, value = llama.projected(head, LAYER, inside, first_position=step)
        keys, values = [*keys, key], [*values, value]
        attended = _attended(query, keys, values)
        states = llama.perceived(head, LAYER, states + llama.merged(head, LAYER, attended))
        found.append(functional.linear(normed(states, head["norm.weight"]), head["lm_head.weight"]))
    return found


def _attended(query: Any, keys: list[Any], values: list[Any]) -> Any:
    """[B, heads, T, D]: causal over the first step's entries, then the same place's entry of each later step."""
    scale, length = 1 / math.sqrt(llama.HEAD_WIDTH), query.shape[-2]
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (query @ keys[0].transpose(-1, -2) * scale).masked_fill(hidden, -math.inf)
    own = [(query * key).sum(-1, keepdim=True) * scale for key in keys[1:]]
    shares = torch.cat((scores, *own), dim=-1).softmax(-1)
    out = shares[..., :length] @ values[0]
    for place, value in enumerate(values[1:]):
        out = out + shares[..., length + place, None] * value
    return out


def accept_length(steps: list[Any], wanted: Any, rows: Any) -> float:
    """Mean of 1 + the proposals that match before the first that does not, over all places.

    `wanted` [B, T + depth - 1]: the target's own choice for tokens 2, 3, …, where the text is the target's greedy answer;
    `rows`: target id by draft id.
    """
    length, right = steps[0].shape[1], None
    total = 1.0
    for step, found in enumerate(steps):
        same = rows[found.argmax(-1)] == wanted[:, step : step + length]
        right = same if right is None else right & same
        total += float(right.float().mean())
    return total
