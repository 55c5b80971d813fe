"""Trains the target, the draft model and the EAGLE-3 head. Seeded; minutes on one core each."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch.nn import functional

from tests.realengine import eagle, llama
from tests.realengine.llama import Weights

BATCH_COUNT: Final = 8
WINDOW_TOKENS: Final = 160
DEPTH: Final = 3
"""Draft steps that the head is unrolled over: K of the suite."""
Note = Callable[[str], None]


def windows(text: bytes, seed: int, tokens: int = WINDOW_TOKENS) -> Iterator[Any]:
    """[B, tokens] without end, from random places."""
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(0, len(data) - tokens, (BATCH_COUNT,), generator=generator)
        yield torch.stack([data[start : start + tokens] for start in starts.tolist()])


def fit(weights: Weights, loss_of: Callable[[], Any], steps: int, rate: float, note: Note) -> None:
    """AdamW with a warm-up and a cosine; `weights` are changed in place."""
    trained = [one.requires_grad_() for one in weights.values()]
    adam = torch.optim.AdamW(trained, lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(steps):
        share = min(1.0, (step + 1) / 30) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        for group in adam.param_groups:
            group["lr"] = rate * share
        loss = loss_of()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        adam.step()
        if step % 50 == 0 or step == steps - 1:
            note(f"step {step}: loss {loss.item():.3f}")
    for one in trained:
        one.requires_grad_(False)


def train_llama(weights: Weights, text: bytes, seed: int, steps: int, note: Note) -> Weights:
    """Next byte, cross entropy."""
    source = windows(text, seed)

    def loss_of() -> Any:
        tokens = next(source)
        found, _ = llama.logits(weights, tokens[:, :-1])
        return functional.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten())

    fit(weights, loss_of, steps, 2e-3, note)
    return weights


def greedy(weights: Weights, prompts: Any, count: int) -> Any:
    """[B, T + count]: the prompts [B, T] and what the model says after them."""
    tokens = prompts
    with torch.no_grad():
        for _ in range(count):
            found, _ = llama.logits(weights, tokens[:, -WINDOW_TOKENS:])
            tokens = torch.cat((tokens, found[:, -1:].argmax(-1)), dim=1)
    return tokens


def draft_ids(text: bytes, count: int) -> Any:
    """The bytes that the text uses most, as target ids in order: the head's reduced vocabulary."""
    counts = torch.bincount(torch.frombuffer(bytearray(text), dtype=torch.uint8).long(), minlength=256)
    return counts.argsort(descending=True, stable=True)[:count].sort().values


def train_head(head: Weights, target: Weights, text: bytes, ids: Any, seed: int, steps: int, note: Note) -> Weights:
    """Against what the target itself would say, on the target's hidden states; unrolled over its own drafts."""
    source = windows(text, seed)
    layers = eagle.auxiliary_layers(llama.layer_count(target))

    def loss_of() -> Any:
        tokens = next(source)
        with torch.no_grad():
            said, seen = llama.logits(target, tokens, layers)
            wanted = said[..., ids].softmax(-1)
            embeddings = functional.embedding(tokens[:, 1:], target["model.embed_tokens.weight"])
        length = tokens.shape[1] - DEPTH
        found = eagle.unrolled(head, embeddings, seen[:, :length], DEPTH)
        losses = [
            -(wanted[:, step + 1 : step + 1 + length] * one.log_softmax(-1)).sum(-1).mean() * 0.8**step
            for step, one in enumerate(found)
        ]
        return torch.stack(losses).sum()

    fit(head, loss_of, steps, 2e-3, note)
    return head


def head_accept_length(head: Weights, target: Weights, prompts: Any, ids: Any, count: int) -> float:
    """AL on the target's own greedy answers to prompts that it was not trained on."""
    tokens = greedy(target, prompts, count)
    begin = prompts.shape[1] - 1
    with torch.no_grad():
        said, seen = llama.logits(target, tokens, eagle.auxiliary_layers(llama.layer_count(target)))
        embeddings = functional.embedding(tokens[:, 1:], target["model.embed_tokens.weight"])
        length = tokens.shape[1] - DEPTH
        found = [one[:, begin:] for one in eagle.unrolled(head, embeddings, seen[:, :length], DEPTH)]
        wanted = said.argmax(-1)[:, begin + 1 :]
    return eagle.accept_length(found, wanted, ids)
