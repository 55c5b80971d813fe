"""Rows of other benchmarks, judged as far as they allow: speed-up, break-even, and what is wrong with how they were made."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from specbench.analysis import verdicts
from specbench.analysis.breakeven import break_even_length
from specbench.analysis.plain_requests import judge_latencies
from specbench.units import Ratio

RETOKENISED_RATIO: Final = 0.02
"""Counts by the server and by the tool's tokenizer differ by more: one of them counts another text."""
SAME_LOAD: Final = ("max_concurrency", "request_rate", "dataset", "model")
"""Without these alike there is no speed-up."""


class Imported(Struct, frozen=True, kw_only=True):
    """What the rows say."""

    rows: tuple[dict[str, Any], ...]
    """As read, each with `speedup`, `break_even_accept_length` and `verdict`, None where they can't be had, and `doubts`."""
    speedup_ratio: Ratio | None
    """Of the only speculative row over the only plain one; None otherwise."""
    warnings: tuple[str, ...]


def judge_rows_of(rows: Sequence[Mapping[str, Any]]) -> Imported:
    """A row without speculation is the baseline of the rows with the same load."""
    judged = tuple(_judged(row, _baseline(row, rows)) for row in rows)
    ratios = [row["speedup"] for row in judged if row["speculation_active"] and row["speedup"] is not None]
    return Imported(
        rows=judged,
        speedup_ratio=ratios[0] if len(ratios) == 1 else None,
        warnings=tuple(dict.fromkeys(text for row in rows for text in _warnings(row))),
    )


def _baseline(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """None when there is none, or more than one."""
    alike = [one for one in rows if not one["speculation_active"] and all(one.get(n) == row.get(n) for n in SAME_LOAD)]
    return alike[0] if len(alike) == 1 else None


def _judged(row: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> dict[str, Any]:
    tps, length = row.get("output_throughput_tps"), row.get("accept_length")
    base_tps = baseline.get("output_throughput_tps") if baseline is not None else None
    ratio = tps / base_tps if tps is not None and base_tps else None
    if not row["speculation_active"]:
        verdict = "baseline"
    elif length is not None and verdicts.is_dead([length]):
        verdict = "dead_drafter"
    else:
        verdict = verdicts.speed_verdict(ratio)
    derived = {"speedup": ratio, "break_even_accept_length": break_even_length(base_tps, tps, length)}
    return {**row, **derived, "verdict": verdict, "doubts": sorted(judge_latencies(row))}


def _warnings(row: Mapping[str, Any]) -> list[str]:
    found = []
    asked, done = row.get("num_prompts"), row.get("completed")
    if row.get("failed") or (isinstance(asked, int) and isinstance(done, int) and done < asked):
        found.append("failed_requests")
    counted, again = row.get("output_tokens"), row.get("output_tokens_retokenized")
    if counted and again and abs(again / counted - 1) > RETOKENISED_RATIO:
        found.append("token_counts_disagree")
    return found
