"""Acceptance taken apart: by draft position, by category, by depth into the answer, over the run. Pure.

Each part pools counts, never means of requests. What the engine does not count is left out, not estimated.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from specbench.analysis import Part, Profile
from specbench.analysis.cells import Arm
from specbench.analysis.metrics import correct_tokens_of, pooled_accept_length
from specbench.dialects.metrics import counted_between
from specbench.records import RequestRecord
from specbench.units import Ratio

DEPTHS_TOKENS: Final = (0, 128, 512, 1024, 2048, 4096, 8192)
"""Edges of the depths that are told apart; the last is open."""
QUARTERS_COUNT: Final = 4
FEWEST_CHUNKS: Final = 20
"""Of a depth, for it to be told."""


def profile_of(arm: Arm) -> Profile:
    """Of the requests that ended well."""
    requests = [request for cell in arm.cells.values() for request in cell.served]
    return Profile(
        variant=arm.variant.name,
        position_ratio=whole(positions(requests) or counted_positions(arm), arm),
        categories=tuple(categories(requests)),
        depths=tuple(depths(requests)),
        quarters=tuple(quarters(requests)),
    )


def positions(requests: Iterable[RequestRecord]) -> tuple[Ratio, ...]:
    """From the histograms: a step that accepted j draft tokens accepted those at positions 1 to j."""
    histograms = [one.accept_histogram for one in requests if one.accept_histogram]
    totals = [sum(column) for column in itertools.zip_longest(*histograms, fillvalue=0)]
    steps = sum(totals)
    if not steps:
        return ()
    return tuple(sum(totals[place:]) / steps for place in range(1, len(totals)))


def whole(shares: Sequence[Ratio], arm: Arm) -> tuple[Ratio, ...]:
    """Every position that is drafted: those that no step ever accepted are not in the histograms."""
    deepest = (arm.longest_accept_tokens or 1) - 1
    return (*shares, *[0.0] * (deepest - len(shares))) if shares else ()


def counted_positions(arm: Arm) -> tuple[Ratio, ...]:
    """From the server's counters, as a share of the steps that drafted; empty when a level was not counted."""
    loads = [load for cell in arm.cells.values() for load in cell.loads]
    counted = [counted_between(*load.counters) if load.counters else None for load in loads]
    known = [one for one in counted if one is not None]
    steps = sum(one.draft_count for one in known)
    if not steps or len(known) < len(counted):
        return ()
    columns = itertools.zip_longest(*(one.position_tokens for one in known), fillvalue=0)
    tokens = [sum(column) for column in columns]
    while (
        tokens and not tokens[-1] and len(tokens) > (arm.proposed_tokens or 0)
    ):  # llama.cpp counts more than it is asked for
        tokens.pop()
    return tuple(one / steps for one in tokens)


def categories(requests: Iterable[RequestRecord]) -> Iterable[Part]:
    """In the order of their names."""
    piles: dict[str, list[RequestRecord]] = {}
    for request in requests:
        piles.setdefault(request.category, []).append(request)
    for name in sorted(piles):
        yield from _part(name, piles[name])


def quarters(requests: Sequence[RequestRecord]) -> Iterable[Part]:
    """Of the categories that occur in each of them only: another kind of prompts is no drift. None of fewer than two
    requests each."""
    ordered = sorted((one for one in requests if one.verify_count), key=lambda one: one.sent_s)
    if len(ordered) < 2 * QUARTERS_COUNT:
        return
    edges = [len(ordered) * one // QUARTERS_COUNT for one in range(QUARTERS_COUNT + 1)]
    piles = [ordered[begin:end] for begin, end in itertools.pairwise(edges)]
    common = set.intersection(*({one.category for one in pile} for pile in piles))
    for place, pile in enumerate(piles, 1):
        yield from _part(f"{place}/{QUARTERS_COUNT}", [one for one in pile if one.category in common])


def depths(requests: Iterable[RequestRecord]) -> Iterable[Part]:
    """Tokens a chunk by how many came before, where the server streams by step; the first chunk is the prefill's."""
    tokens, chunks = [0] * len(DEPTHS_TOKENS), [0] * len(DEPTHS_TOKENS)
    for request in requests:
        if not streams_by_step(request):
            continue
        before = request.chunk_tokens[0]
        for count in request.chunk_tokens[1:]:
            place = max(index for index, edge in enumerate(DEPTHS_TOKENS) if edge <= before)
            tokens[place] += count
            chunks[place] += 1
            before += count
    for place, edge in enumerate(DEPTHS_TOKENS):
        if chunks[place] >= FEWEST_CHUNKS:
            after = f"{edge} to {DEPTHS_TOKENS[place + 1]}" if place + 1 < len(DEPTHS_TOKENS) else f"from {edge}"
            yield Part(name=after, accept_length=tokens[place] / chunks[place], verify_count=chunks[place])


def streams_by_step(request: RequestRecord) -> bool:
    """Whether its chunks after the first are as many as its verify steps, within one for the end of the answer."""
    return (
        bool(request.chunk_tokens and request.verify_count)
        and abs(len(request.chunk_tokens) - 1 - (request.verify_count or 0)) <= 1
    )


def _part(name: str, requests: Sequence[RequestRecord]) -> Iterable[Part]:
    length = pooled_accept_length(requests)
    if length is not None:
        steps = sum(one.verify_count or 0 for one in requests if correct_tokens_of(one) is not None)
        yield Part(name=name, accept_length=length, verify_count=steps)
