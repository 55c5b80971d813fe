"""A comparison as strict JSON, and the schema that it keeps to."""

import json
from typing import Any

import msgspec

from specbench.analysis.comparing import COMPARISON_SCHEMA_VERSION, Comparison
from specbench.render.json_report import strict


def render(comparison: Comparison) -> str:
    """Indented by two, ends with a line break. Never NaN or Infinity."""
    return json.dumps(document(comparison), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(comparison: Comparison) -> Any:
    """As plain values; `label` says SIMULATED where it must."""
    label = "SIMULATED" if comparison.simulated else None
    whole = msgspec.to_builtins(comparison)
    return strict({**whole, "label": label, "exit_code": comparison.exit_code})


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `document`, made from the types."""
    (made,), definitions = msgspec.json.schema_components([Comparison], ref_template="#/$defs/{name}")
    del made
    top = definitions.pop("Comparison")
    top["properties"] |= {
        "label": {"enum": ["SIMULATED", None]},
        "exit_code": {"enum": [0, 1, 2, 3], "description": "0 pass, 1 fail, 2 refused, 3 inconclusive"},
        "schema_version": {"const": COMPARISON_SCHEMA_VERSION},
    }
    top["required"] = sorted({*top["required"], "label", "exit_code", "schema_version"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"specbench comparison, version {COMPARISON_SCHEMA_VERSION}",
        **{name: value for name, value in top.items() if name != "title"},
        "$defs": definitions,
    }


def schema_text() -> str:
    """What `specbench schema --of comparison` prints."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
