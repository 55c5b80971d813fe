"""Bare numbers about requests and latencies, as somebody pastes them: what they say of how the measurement was made."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from specbench.analysis import verdicts

MILLI: Final = 1000.0
DRAFTED: Final = ("proposed_tokens", "drafted", "draft_tokens", "verify_count", "num_drafts")
"""Names under which a request's own count of drafts comes."""
HUNG_S: Final = 30.0
"""Requests run, and no token for so long."""


def judge_requests(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Requests in the order of sending: `ttft_s` or `ttft_ms`, `tpot_…`, `e2e_…`, `output_tokens`, and a count of drafts."""
    found = set()
    for name in ("tpot", "ttft", "e2e"):
        times = [value for row in rows if (value := seconds(row, name)) is not None]
        if len(times) == len(rows) and verdicts.is_warming(times):
            found.add("warmup_in_window")
    late = [verdicts.is_buffered(seconds(row, "ttft"), seconds(row, "e2e"), row.get("output_tokens")) for row in rows]
    if late and all(late):
        found.add("stream_buffered")
    drafted = [any(counts) for row in rows if (counts := [row[name] for name in DRAFTED if row.get(name) is not None])]
    if len(drafted) > 2 and drafted[0] and not any(drafted[1:]):
        found.add("no_drafts_after_first_request")
    return found


def judge_latencies(row: Mapping[str, Any]) -> set[str]:
    """Means or medians of one run, in the same names."""
    found = set()
    if verdicts.is_per_chunk(seconds(row, "itl"), seconds(row, "tpot"), row.get("accept_length")):
        found.add("itl_is_per_chunk")
    if verdicts.is_buffered(seconds(row, "ttft"), seconds(row, "e2e"), row.get("output_tokens") or verdicts.BUFFERED_TOKENS):
        found.add("stream_buffered")
    return found


def judge_server(numbers: Mapping[str, Any]) -> set[str]:
    """`exit_code` of a server that ended by itself; `no_progress_s` while `running_requests` wait."""
    if numbers.get("exit_code") is not None:
        return {"server_died"}
    idle_s = numbers.get("no_progress_s")
    return {"server_hung"} if idle_s is not None and idle_s >= HUNG_S and numbers.get("running_requests", 1) else set()


def seconds(row: Mapping[str, Any], name: str) -> float | None:
    """`name_s`, `name_ms`, or either with `median_` or `mean_` before it."""
    for prefix in ("", "median_", "mean_"):
        if row.get(f"{prefix}{name}_s") is not None:
            return float(row[f"{prefix}{name}_s"])
        if row.get(f"{prefix}{name}_ms") is not None:
            return float(row[f"{prefix}{name}_ms"]) / MILLI
    return None
