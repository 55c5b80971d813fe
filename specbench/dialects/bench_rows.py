"""Result rows of other benchmarks (`sglang.bench_serving`, `vllm bench serve`) in neutral names. Pure: text in, rows out.

Both write one JSON object a run; SGLang appends them to a `.jsonl` and writes an unlimited rate as a bare Infinity,
which strict JSON does not know. vLLM's speculation keys are there only when the server speculated, and its rate is a
percentage.
"""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

NAMES: Final = {
    "tag": "tag",
    "backend": "backend",
    "model_id": "model",
    "dataset_name": "dataset",
    "output_throughput": "output_throughput_tps",
    "input_throughput": "input_throughput_tps",
    "total_throughput": "total_throughput_tps",
    "total_token_throughput": "total_throughput_tps",
    "request_throughput": "request_throughput_rps",
    "request_goodput": "goodput_rps",
    "duration": "duration_s",
    "completed": "completed",
    "failed": "failed",
    "num_prompts": "num_prompts",
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "total_output_tokens_retokenized": "output_tokens_retokenized",
    "max_concurrency": "max_concurrency",
    "concurrency": "mean_concurrency",
    "accept_length": "accept_length",
    "spec_decode_acceptance_length": "accept_length",
    "spec_decode_num_drafts": "verify_count",
    "spec_decode_draft_tokens": "drafted_tokens",
    "spec_decode_accepted_tokens": "accepted_tokens",
    "spec_decode_per_position_acceptance_rates": "per_position",
}
"""Keys that keep their value. Latencies are renamed by rule."""
STATISTICS: Final = ("mean", "median", "std", "p90", "p95", "p99", "max")
LATENCIES: Final = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e_latency": "e2e", "e2el": "e2e"}
MARKS: Final = ("output_throughput", "duration", "completed")
"""A row of either tool has all of these."""


def rows_of(text: str) -> tuple[dict[str, Any], ...]:
    """A JSON object, a list of them, or one a line. Raises ValueError in one sentence that begins with `line N`."""
    values = list(_values(text))
    for number, value in values:
        lacking = [name for name in MARKS if not isinstance(value, dict) or name not in value]
        if lacking:
            raise ValueError(
                f"line {number}: no result of sglang.bench_serving or vllm bench serve: it has no {', '.join(lacking)}"
            )
    return tuple(_row(value) for _, value in values)


def _values(text: str) -> Iterator[tuple[int, Any]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"line {number}: is no JSON: {error}") from None
        return
    yield from ((1, value) for value in (whole if isinstance(whole, list) else [whole]))


def _row(raw: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {NAMES[key]: _finite(value) for key, value in raw.items() if key in NAMES}
    for statistic in STATISTICS:
        for key, name in LATENCIES.items():
            value = _finite(raw.get(f"{statistic}_{key}_ms"))
            if value is not None:
                row[f"{statistic}_{name}_ms"] = value
    row["request_rate"] = _rate(raw.get("request_rate"))
    row["accept_length"] = row.get("accept_length")
    row["speculation_active"] = row["accept_length"] is not None or bool(row.get("verify_count"))
    return row | _drafting(raw, row)


def _drafting(raw: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    percent = _finite(raw.get("spec_decode_acceptance_rate"))
    if isinstance(percent, int | float):
        found["accept_rate_fraction"] = percent / 100
    drafts, drafted = row.get("verify_count"), row.get("drafted_tokens")
    if drafts and drafted:
        found["num_speculative_tokens"] = round(drafted / drafts)
        if row.get("accept_length") is None and row.get("accepted_tokens") is not None:
            found["accept_length"] = 1 + row["accepted_tokens"] / drafts
    return found


def _rate(value: Any) -> Any:
    """`unlimited` however it is written; None where it is not stated."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, float) and math.isinf(value):
        return "unlimited"
    return _finite(value)


def _finite(value: Any) -> Any:
    """No NaN, no infinity, also inside a list."""
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
