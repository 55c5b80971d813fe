"""Lean requests to the figures of one launch: per level a few totals and one number a request, in arrays. Pure.

The definitions are those of `metrics` and `timing`; a test holds the two together on a stored run.
"""

from array import array
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np
from msgspec import Struct

from specbench.analysis.cells import Key
from specbench.streams import LeanRequest
from specbench.suite import Slo
from specbench.timing import is_impossible
from specbench.units import Second


class Column(Struct):
    """One level of one launch, as its requests go by."""

    slo: Slo | None = None
    request_count: int = 0
    failed_count: int = 0
    impossible_count: int = 0
    """Requests whose records can't be true: among `request_count` and in nothing else."""
    uncounted_count: int = 0
    """Requests that ended well without a count of tokens."""
    plain_tokens: int = 0
    """Of requests for which nothing was drafted: a step a token."""
    output_tokens: int = 0
    within_count: int = 0
    """Requests within `slo`."""
    arrivals_count: int = 0
    due_s: Second = float("inf")
    """The first of those that ended well."""
    done_s: Second = 0.0
    all_due_s: Second = float("inf")
    """The first of all."""
    all_done_s: Second = 0.0
    ttft_s: Any = None
    """`array('d')`, as the two below."""
    tpot_s: Any = None
    prompts: Any = None
    """Hash of the prompt's id, one a request that has both counts; `correct` and `verified` go with it."""
    correct: Any = None
    verified: Any = None


def read_columns(blocks: Iterable[list[LeanRequest]], slos: dict[Key, Slo | None]) -> dict[Key, Column]:
    """By level, warm-up left out; levels that `slos` does not name are left out too."""
    columns = {key: _empty(slo) for key, slo in slos.items()}
    for block in blocks:
        levels: dict[Key, list[LeanRequest]] = {}
        for request in block:
            if not request.warmup:
                levels.setdefault((request.workload, request.concurrency), []).append(request)
        for key in levels.keys() & columns.keys():
            _add(columns[key], levels[key])
    return columns


def _empty(slo: Slo | None) -> Column:
    doubles, counts = (array("d"), array("d")), (array("q"), array("q"), array("q"))
    return Column(slo=slo, ttft_s=doubles[0], tpot_s=doubles[1], prompts=counts[0], correct=counts[1], verified=counts[2])


def _add(column: Column, requests: list[LeanRequest]) -> None:
    """In whole lists, which takes half the time of one after another."""
    column.request_count += len(requests)
    impossible = list(map(is_impossible, requests))
    if any(impossible):
        column.impossible_count += sum(impossible)
        requests = [one for one, is_out in zip(requests, impossible, strict=True) if not is_out]
        if not requests:
            return
    _add_possible(column, requests)


def _add_possible(column: Column, requests: list[LeanRequest]) -> None:
    served = [one for one in requests if one.error is None]
    column.failed_count += len(requests) - len(served)
    column.arrivals_count += sum(one.turn_index == 0 for one in requests)
    column.all_due_s = min(column.all_due_s, min(one.due_s for one in requests))
    column.all_done_s = max(column.all_done_s, max(one.done_s for one in requests))
    if not served:
        return
    column.due_s = min(column.due_s, min(one.due_s for one in served))
    column.done_s = max(column.done_s, max(one.done_s for one in served))
    sums = [sum(one.chunk_tokens) for one in served]
    tokens = [
        (total if one.chunk_tokens else None) if one.output_tokens is None else one.output_tokens
        for one, total in zip(served, sums, strict=True)
    ]
    counted = [one for one in tokens if one is not None]
    column.uncounted_count += len(tokens) - len(counted)
    column.output_tokens += sum(counted)
    counts = [len(one.chunk_s) for one in served]
    later = [
        total - one.chunk_tokens[0] if len(one.chunk_tokens) == chunks and total else (count or 1) - 1
        for one, total, count, chunks in zip(served, sums, tokens, counts, strict=True)
    ]
    _add_times(column, served, np.array(counts), np.array(later, dtype=float))
    _add_drafts(column, served, tokens)


def _add_times(column: Column, served: list[LeanRequest], counts: "np.ndarray", later_tokens: "np.ndarray") -> None:
    """As `timing.ttft_s`, `tpot_s` and `meets`; `later_tokens` are those after the first chunk."""
    firsts_s = np.array([one.chunk_s[0] if one.chunk_s else 0.0 for one in served])
    lasts_s = np.array([one.chunk_s[-1] if one.chunk_s else 0.0 for one in served])
    known = (counts > 0) & ~np.array([one.stepped for one in served])
    ttft_s = np.where(known, firsts_s - np.array([one.due_s for one in served]), np.nan)
    spread = known & (counts > 1) & (later_tokens > 0)
    tpot_s = np.where(spread, (lasts_s - firsts_s) / np.where(later_tokens > 0, later_tokens, 1), np.nan)
    column.ttft_s.frombytes(ttft_s[known].tobytes())
    column.tpot_s.frombytes(tpot_s[spread].tobytes())
    if column.slo is not None:
        met = np.ones(len(served), dtype=bool)
        if column.slo.ttft_s is not None:
            met &= ttft_s <= column.slo.ttft_s
        if column.slo.tpot_s is not None:
            met &= (counts == 1) | (tpot_s <= column.slo.tpot_s)
        column.within_count += int(met.sum())


def _add_drafts(column: Column, served: list[LeanRequest], tokens: list[int | None]) -> None:
    """As `metrics.pooled_accept_length`."""
    for request, count in zip(served, tokens, strict=True):
        verified = request.verify_count
        if not verified:
            if verified is None and request.proposed_tokens == 0:
                column.plain_tokens += max(0, (count or 0) - 1)
            continue
        correct = request.correct_tokens
        if correct is None and request.accept_histogram:
            correct = sum(index * steps for index, steps in enumerate(request.accept_histogram))
        if correct is None and count is not None:
            correct = max(0, count - 1 - verified)
        if correct is not None:
            column.prompts.append(_hashed(request.prompt_id))
            column.correct.append(correct)
            column.verified.append(verified)


def _hashed(name: str) -> int:
    """The same in every process, unlike `hash`."""
    octets = name.encode()
    return crc32(octets) << 31 ^ crc32(octets[::-1])


def accept_length(column: Column) -> float | None:
    """From the requests' counters; None where they have none."""
    verified = sum(column.verified)
    return 1 + sum(column.correct) / (verified + column.plain_tokens) if verified else None


def figures(column: Column, rate_rps: float | None) -> dict[str, float | None]:
    """By the names of `METRICS`. None: not measured."""
    served_count = column.request_count - column.failed_count - column.impossible_count
    wall_s = column.done_s - column.due_s if served_count else 0.0
    lacks = column.impossible_count > 0
    whole = wall_s > 0 and column.uncounted_count == 0 and not lacks
    offered_s = column.all_done_s - column.all_due_s if served_count else 0.0
    if rate_rps and served_count:
        offered_s = max(offered_s, column.arrivals_count / rate_rps)
    return {
        "output_tps": column.output_tokens / wall_s if whole else None,
        "accept_length": accept_length(column),
        "ttft_p50_s": _quantile(column.ttft_s, 0.5),
        "tpot_p50_s": _quantile(column.tpot_s, 0.5),
        "ttft_p99_s": _quantile(column.ttft_s, 0.99),
        "tpot_p99_s": _quantile(column.tpot_s, 0.99),
        "goodput_rps": column.within_count / offered_s if column.slo is not None and offered_s > 0 and not lacks else None,
    }


def _quantile(values: "array[float]", share: float) -> float | None:
    return float(np.quantile(np.frombuffer(values), share)) if len(values) else None
