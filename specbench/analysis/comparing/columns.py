"""Lean requests to the figures of one launch: per level a few totals and one number a request, in arrays. Pure.

The definitions are those of `metrics` and `timing`; a test holds the two together on a stored run.
"""

from array import array
from collections.abc import Iterable
from itertools import groupby
from math import inf
from operator import attrgetter, lt
from typing import Any
from zlib import crc32

import numpy as np
from msgspec import Struct

from specbench.analysis.cells import Key
from specbench.streams import LeanRequest
from specbench.suite import Slo
from specbench.timing import BRIDGED_S, is_impossible
from specbench.units import Second

_LEVEL = attrgetter("workload", "concurrency", "warmup")
_DUE, _DONE, _TURN, _STEPPED = map(attrgetter, ("due_s", "done_s", "turn_index", "stepped"))
_CHUNK_S, _CHUNK_TOKENS, _TOKENS = map(attrgetter, ("chunk_s", "chunk_tokens", "output_tokens"))
_PROMPT, _VERIFIED, _CORRECT = map(attrgetter, ("prompt_id", "verify_count", "correct_tokens"))


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
        for (workload, concurrency, is_warmup), stretch in groupby(block, _LEVEL):
            if not is_warmup:
                levels.setdefault((workload, concurrency), []).extend(stretch)
        for key in levels.keys() & columns.keys():
            _add(columns[key], levels[key])
    return columns


def _empty(slo: Slo | None) -> Column:
    doubles, counts = (array("d"), array("d")), (array("q"), array("q"), array("q"))
    return Column(slo=slo, ttft_s=doubles[0], tpot_s=doubles[1], prompts=counts[0], correct=counts[1], verified=counts[2])


def _add(column: Column, requests: list[LeanRequest]) -> None:
    column.request_count += len(requests)
    if _is_suspect(requests):
        impossible = list(map(is_impossible, requests))
        column.impossible_count += sum(impossible)
        requests = [one for one, is_out in zip(requests, impossible, strict=True) if not is_out]
    if requests:
        _add_possible(column, requests)


def _is_suspect(requests: list[LeanRequest]) -> bool:
    """Whether one may be impossible: `is_impossible` of all at once, by functions of C, which takes half its time."""
    dues_s, dones_s, times_s = list(map(_DUE, requests)), list(map(_DONE, requests)), list(map(_CHUNK_S, requests))
    counts = [min(filter(None, map(count, requests)), default=0) for count in (_TOKENS, _VERIFIED)]
    firsts_s = [one[0] if one else inf for one in times_s]
    lasts_s = [one[-1] if one else -inf for one in times_s]
    return (
        min(0, *dues_s, *counts) < 0
        or any(map(lt, dones_s, dues_s))
        or any(map(lt, firsts_s, dues_s))
        or any(map(lt, [one + BRIDGED_S for one in dones_s], lasts_s))
        or list(map(list, times_s)) != list(map(sorted, times_s))
    )


def _add_possible(column: Column, requests: list[LeanRequest]) -> None:
    """In whole lists and by functions of C, which takes a third of the time of one after another."""
    served = [one for one in requests if one.error is None]
    dues_s, dones_s = list(map(_DUE, requests)), list(map(_DONE, requests))
    column.failed_count += len(requests) - len(served)
    column.arrivals_count += list(map(_TURN, requests)).count(0)
    column.all_due_s = min(column.all_due_s, *dues_s)
    column.all_done_s = max(column.all_done_s, *dones_s)
    if not served:
        return
    if len(served) < len(requests):
        dues_s, dones_s = list(map(_DUE, served)), list(map(_DONE, served))
    column.due_s = min(column.due_s, *dues_s)
    column.done_s = max(column.done_s, *dones_s)
    times_s, chunk_tokens = list(map(_CHUNK_S, served)), list(map(_CHUNK_TOKENS, served))
    sums = list(map(sum, chunk_tokens))
    tokens: list[int | None] = list(map(_TOKENS, served))
    if None in tokens:
        told = zip(tokens, sums, chunk_tokens, strict=True)
        tokens = [(total if each else None) if count is None else count for count, total, each in told]
    counted = [one for one in tokens if one is not None]
    column.uncounted_count += len(tokens) - len(counted)
    column.output_tokens += sum(counted)
    counts = list(map(len, times_s))
    later = [
        total - each[0] if len(each) == chunks and total else (count or 1) - 1
        for each, total, count, chunks in zip(chunk_tokens, sums, tokens, counts, strict=True)
    ]
    known = (np.array(counts) > 0) & ~np.array(list(map(_STEPPED, served)))
    _add_times(column, times_s, np.array(dues_s), known, np.array(later, dtype=float))
    _add_drafts(column, served, tokens)


def _add_times(
    column: Column, times_s: list[tuple[Second, ...]], dues_s: "np.ndarray", known: "np.ndarray", later_tokens: "np.ndarray"
) -> None:
    """As `timing.ttft_s`, `tpot_s` and `meets`; `later_tokens` are those after the first chunk."""
    counts = np.array(list(map(len, times_s)))
    firsts_s = np.array([one[0] if one else 0.0 for one in times_s])
    lasts_s = np.array([one[-1] if one else 0.0 for one in times_s])
    ttft_s = np.where(known, firsts_s - dues_s, np.nan)
    spread = known & (counts > 1) & (later_tokens > 0)
    tpot_s = np.where(spread, (lasts_s - firsts_s) / np.where(later_tokens > 0, later_tokens, 1), np.nan)
    column.ttft_s.frombytes(ttft_s[known].tobytes())
    column.tpot_s.frombytes(tpot_s[spread].tobytes())
    if column.slo is not None:
        met = np.ones(len(times_s), dtype=bool)
        if column.slo.ttft_s is not None:
            met &= ttft_s <= column.slo.ttft_s
        if column.slo.tpot_s is not None:
            met &= (counts == 1) | (tpot_s <= column.slo.tpot_s)
        column.within_count += int(met.sum())


def _add_drafts(column: Column, served: list[LeanRequest], tokens: list[int | None]) -> None:
    """As `metrics.pooled_accept_length`."""
    verified, correct = list(map(_VERIFIED, served)), list(map(_CORRECT, served))
    if all(verified) and None not in correct:  # as nearly always: every request has both counts
        column.prompts.extend(map(_hashed, map(_PROMPT, served)))
        column.correct.extend(correct)
        column.verified.extend(verified)
        return
    _add_odd_drafts(column, served, tokens)


def _add_odd_drafts(column: Column, served: list[LeanRequest], tokens: list[int | None]) -> None:
    """Request by request."""
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
