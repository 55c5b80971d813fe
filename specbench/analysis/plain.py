"""Judges bare numbers, as somebody pastes them: log samples, a table of rows, or two arms. No run, no records.

`judge_plain` takes a mapping in neutral names and gives the verdicts that these numbers allow, and no other.
"""

import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from msgspec import Struct, field

from specbench.analysis import verdicts
from specbench.analysis.breakeven import break_even_length
from specbench.analysis.cells import Cell, Load
from specbench.analysis.metrics import graph_ratio, logged_accept_length
from specbench.analysis.plain_requests import judge_latencies, judge_requests, judge_server
from specbench.dialects import DecodeSample
from specbench.dialects.sglang_version import rate_meaning
from specbench.units import PerSecond, Ratio


class Opinion(Struct, frozen=True, kw_only=True):
    """What can be said of these numbers."""

    verdicts: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)
    """Derived figures by name, unrounded."""


def judge_plain(numbers: Mapping[str, Any], version: str | None = None) -> Opinion:
    """By what is there: `samples`, `rows`, the arms `baseline` and `speculative`, or `requests` and latencies (see
    `plain_requests`). Raises ValueError for none."""
    extra = judge_requests(numbers.get("requests", ())) | judge_latencies(numbers) | judge_server(numbers)
    opinion = _by_figures(numbers, version)
    if opinion is None and not extra and "requests" not in numbers:
        raise ValueError("needs `samples`, `rows`, `baseline` and `speculative`, or `requests`")
    found = {*extra, *(opinion.verdicts if opinion else ("unknown",))}
    return Opinion(verdicts=verdicts.in_order(found), values=opinion.values if opinion else {})


def _by_figures(numbers: Mapping[str, Any], version: str | None) -> Opinion | None:
    if "samples" in numbers:
        return judge_samples(numbers, version)
    if "rows" in numbers:
        return judge_rows(numbers["rows"], numbers.get("baseline_output_tps", {}))
    if "baseline" in numbers and "speculative" in numbers:
        return judge_arms(numbers["baseline"], numbers["speculative"], numbers.get("client_concurrency"))
    return None


def judge_samples(numbers: Mapping[str, Any], version: str | None = None) -> Opinion:
    """Decode samples of one server, with a baseline's throughput or without."""
    samples = [_sample(one) for one in numbers["samples"]]
    cell = Cell(workload="", concurrency=1, loads=(Load(requests=(), samples=tuple(samples)),))
    draft_tokens, steps = numbers.get("num_draft_tokens"), numbers.get("num_steps")
    pairs = [(one.accept_length, one.accept_rate) for one in samples]
    lengths = [one.accept_length for one in samples if one.accept_length is not None]
    ratio = _speedup(samples, numbers.get("baseline") or {})
    graphs = verdicts.graph_verdict(graph_ratio(cell), _wants_graphs(numbers.get("launch")))
    found = {verdicts.speed_verdict(ratio)} | ({graphs} if graphs else set())
    if draft_tokens and samples and not lengths:
        found.add("speculation_inactive")
    if verdicts.is_dead(lengths):
        found = (found - {"healthy"}) | {"dead_drafter"}
    elif ratio is None and lengths and graphs is None:
        found.add("healthy")
    found |= _over_time(samples, lengths, _longest(draft_tokens, steps, numbers.get("topk")))
    values = {
        "accept_length": logged_accept_length(cell),
        "accept_rate_convention": rate_meaning(pairs, version, draft_tokens, steps).convention,
        "speedup": ratio,
    }
    return Opinion(verdicts=verdicts.in_order(found), values=values)


def _over_time(samples: Sequence[DecodeSample], lengths: Sequence[float], longest: float | None) -> set[str]:
    """What only the order of the samples tells."""
    found = set()
    if verdicts.is_starved([(one.running_requests, verdicts.transferring(one.extra)) for one in samples]):
        found.add("decode_starved_by_transfer")
    if verdicts.is_wedged([(one.running_requests, one.gen_throughput_tps) for one in samples]):
        found.add("engine_wedged")
    if verdicts.is_fallback([(one.running_requests, one.accept_length) for one in samples]):
        return found | {"spec_fallback_engaged"}
    if verdicts.declines(lengths):
        found.add("acceptance_declining")
    if verdicts.is_at_ceiling(lengths, longest):
        found.add("acceptance_at_ceiling")
    return found


def _longest(draft_tokens: int | None, steps: int | None, topk: int | None) -> float | None:
    """The ceiling of AL; None where it can't be told."""
    if draft_tokens is None or draft_tokens < 2:
        return None
    return min(draft_tokens - 1, steps or draft_tokens - 1) + 1 if steps or topk in (None, 1) else None


def judge_rows(rows: Sequence[Mapping[str, Any]], baseline_output_tps: Mapping[str, PerSecond]) -> Opinion:
    """A table of configurations; `baseline_output_tps` by concurrency, as text."""
    judged = [_judge_row(row, baseline_output_tps.get(str(row.get("concurrency")))) for row in rows]
    found = {row["verdict"] for row in judged}.union(*(judge_latencies(row) for row in rows))
    lengths = [row["accept_length"] for row in rows if row.get("accept_length") is not None]
    if verdicts.is_dead(lengths):
        found.add("dead_drafter")
    if any(verdicts.goes_too_deep(pairs) for pairs in _depths_by_concurrency(rows)):
        found.add("draft_depth_too_large")
    if any(verdicts.misleads(pairs) for pairs in _rates_by_concurrency(rows)):
        found.add("accept_rate_misleading")
    return Opinion(verdicts=verdicts.in_order(found), values={"rows": judged})


def judge_arms(baseline: Mapping[str, Any], speculative: Mapping[str, Any], concurrency: int | None) -> Opinion:
    """Two runs under the same offered load. A speed-up between arms that held different loads is only `_if_forced`."""
    ours, theirs = (_limit(arm, concurrency) for arm in (speculative, baseline))
    base_tps, tps = baseline.get("output_tps"), speculative.get("output_tps")
    ratio = tps / base_tps if tps is not None and base_tps else None
    if concurrency is not None and not verdicts.same_admission(concurrency, ours, theirs):
        limits = [limit for limit in (ours, theirs) if limit is not None]
        values = {"admission_limit": min(limits), "speedup_if_forced": ratio, "speedup": None}
        return Opinion(verdicts=("not_comparable", "concurrency_capped"), values=values)
    found = {verdicts.speed_verdict(ratio)} | judge_latencies(baseline) | judge_latencies(speculative)
    length = speculative.get("accept_length")
    if length is not None and verdicts.is_dead([length]):
        found.add("dead_drafter")
    values = {"speedup": ratio, "break_even_accept_length": break_even_length(base_tps, tps, length)}
    return Opinion(verdicts=verdicts.in_order(found), values=values)


def _judge_row(row: Mapping[str, Any], base_tps: PerSecond | None) -> dict[str, Any]:
    tps, length = row.get("output_tps"), row.get("accept_length")
    ratio = tps / base_tps if tps is not None and base_tps else None
    dead = length is not None and verdicts.is_dead([length])
    return {
        "speedup": ratio,
        "break_even_accept_length": break_even_length(base_tps, tps, length),
        "verdict": "dead_drafter" if dead else verdicts.speed_verdict(ratio),
    }


def _rates_by_concurrency(rows: Sequence[Mapping[str, Any]]) -> list[list[tuple[float, float]]]:
    """(accept rate, tok/s) pairs that may be set side by side."""
    groups: dict[Any, list[tuple[float, float]]] = {}
    for row in rows:
        if row.get("accept_rate") is not None and row.get("output_tps") is not None:
            groups.setdefault(row.get("concurrency"), []).append((row["accept_rate"], row["output_tps"]))
    return list(groups.values())


def _depths_by_concurrency(rows: Sequence[Mapping[str, Any]]) -> list[list[tuple[int, float]]]:
    """(draft tokens, tok/s) of rows with one top-k at one concurrency."""
    groups: dict[Any, list[tuple[int, float]]] = {}
    for row in rows:
        depth = row.get("num_draft_tokens")
        if depth is not None and row.get("output_tps") is not None:
            groups.setdefault((row.get("concurrency"), row.get("topk")), []).append((depth, row["output_tps"]))
    return list(groups.values())


def _speedup(samples: Sequence[DecodeSample], baseline: Mapping[str, Any]) -> Ratio | None:
    """Means of the log's throughput, over samples with as many running requests as the baseline had."""
    base_tps, running = baseline.get("gen_throughput_tps"), baseline.get("running_requests")
    rates = [
        one.gen_throughput_tps
        for one in samples
        if one.gen_throughput_tps is not None and running in (None, one.running_requests)
    ]
    return fmean(rates) / base_tps if rates and base_tps else None


def _limit(arm: Mapping[str, Any], concurrency: int | None) -> int | None:
    if concurrency is None:
        return None
    stated = _flag(arm.get("launch", ()), "--max-running-requests")
    return verdicts.admission_limit(concurrency, stated, arm.get("max_running_seen"), arm.get("max_queue_seen"))


def _flag(words: Sequence[str] | str, name: str) -> int | None:
    """A whole number behind a flag, as `--flag 8` or `--flag=8`."""
    listed = words.split() if isinstance(words, str) else [str(word) for word in words]
    for word, after in itertools.pairwise([*listed, ""]):
        text = after if word == name else word.removeprefix(name + "=")
        if (word == name or word.startswith(name + "=")) and text.isdigit():
            return int(text)
    return None


def _wants_graphs(launch: Sequence[str] | str | None) -> bool | None:
    """False when the command line switches them off."""
    words = launch.split() if isinstance(launch, str) else [str(word) for word in launch or ()]
    off = {"--disable-cuda-graph", "--cuda-graph-backend-decode=disabled", "--enforce-eager"}
    return False if off & set(words) else None


def _sample(one: Mapping[str, Any]) -> DecodeSample:
    known = set(DecodeSample.__struct_fields__)
    extra = {name: value for name, value in one.items() if name not in known}
    return DecodeSample(**{name: value for name, value in one.items() if name in known - {"extra"}}, extra=extra)
