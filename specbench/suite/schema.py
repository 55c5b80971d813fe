"""The JSON Schema of a suite file: what editors use, and what `structure` checks against."""

from typing import Any

import msgspec

from specbench.suite.file import SuiteFile

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def suite_schema() -> dict[str, Any]:
    """Made from the file's types. Top-level keys beginning with `x-` are free: a place for anchors."""
    schema = msgspec.json.schema(SuiteFile)
    definitions = {name: _plain(definition) for name, definition in schema["$defs"].items()}
    root = definitions.pop("SuiteFile")
    return {
        "$schema": DRAFT,
        **root,
        "title": "specbench suite",
        "patternProperties": {"^x-": {"description": "Ignored: a place for YAML anchors"}},
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """As printed and committed: indented JSON that ends with a line break."""
    return msgspec.json.format(msgspec.json.encode(suite_schema()), indent=2).decode() + "\n"


def _plain(part: Any) -> Any:
    """Without the defaults that say nothing: null, and whole sections."""
    if isinstance(part, list):
        return [_plain(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _plain(value)
        for key, value in part.items()
        if not (key == "default" and (value is None or isinstance(value, dict | list)))
    }
