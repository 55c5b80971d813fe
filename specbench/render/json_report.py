"""A judgement as strict JSON for programs: base units in the names of keys, null where nothing was measured."""

import json
import math
from typing import Any

import msgspec

from specbench.analysis import Judgement, Quantiles, Summary
from specbench.render.words import clean

REPORT_SCHEMA_VERSION = 1


def render(judgement: Judgement) -> str:
    """Indented by two, ends with a line break. Never NaN or Infinity."""
    return json.dumps(strict(document(judgement)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(judgement: Judgement) -> dict[str, Any]:
    """The report as plain values."""
    whole = msgspec.to_builtins(judgement)
    label = "SIMULATED" if judgement.simulated else None
    rows = {name: [flat(row) for row in getattr(judgement, name)] for name in ("summaries", "overview")}
    return {"schema_version": REPORT_SCHEMA_VERSION, "label": label, **whole, **rows}


def flat(row: Summary) -> dict[str, Any]:
    """A row with its quantiles side by side: `ttft_p50_s`, `ttft_p99_s`, `ttft_count`."""
    values: dict[str, Any] = {}
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if name in ("ttft", "tpot", "step_time"):
            values |= _side_by_side(name, value)
        else:
            values[name] = value
    return values


def _side_by_side(name: str, found: Quantiles | None) -> dict[str, Any]:
    if found is None:
        return {f"{name}_p50_s": None, f"{name}_p99_s": None, f"{name}_count": 0}
    return {f"{name}_p50_s": found.p50_s, f"{name}_p99_s": found.p99_s, f"{name}_count": found.count}


def strict(value: Any) -> Any:
    """Not-a-number becomes null, control characters go."""
    if isinstance(value, dict):
        return {clean(str(key)): strict(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return clean(value) if isinstance(value, str) else value
