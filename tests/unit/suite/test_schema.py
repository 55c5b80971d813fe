"""The JSON Schema, its committed copy, and the suites that are shipped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from specbench import datasets, engines
from specbench.suite import load_suite, schema_text, suite_schema
from specbench.suite.structure import RULES, SENTENCES

ROOT: Final = Path(__file__).parents[3]
SUITES: Final = sorted((ROOT / "suites").glob("*.yaml"))
ANNOTATIONS: Final = {"title", "description", "default", "$ref", "$schema", "$defs", "properties", "patternProperties"}
ELSEWHERE: Final = {"additionalProperties", "required", "anyOf", "propertyNames", "items", "prefixItems"}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every subschema."""
    yield schema
    for key in ("properties", "patternProperties", "$defs"):
        for one in schema.get(key, {}).values():
            yield from parts(one)
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key])
    for one in schema.get("anyOf", ()):
        yield from parts(one)


def test_it_is_a_schema_and_its_copy_is_current() -> None:
    jsonschema.Draft202012Validator.check_schema(suite_schema())
    copy = ROOT / "specbench/suite/suite.schema.json"
    assert copy.read_text(encoding="utf-8") == schema_text(), "run: specbench schema > specbench/suite/suite.schema.json"


def test_every_keyword_has_its_sentence() -> None:
    found = {key for part in parts(suite_schema()) for key in part}
    assert found - ANNOTATIONS - ELSEWHERE <= set(SENTENCES)
    assert {part["pattern"] for part in parts(suite_schema()) if "pattern" in part} <= set(RULES)


def test_mappings_are_closed_and_keys_described() -> None:
    schema = suite_schema()
    for title, part in {"root": schema, **schema["$defs"]}.items():
        assert part["additionalProperties"] is False, title
        if title == "Exclusion":
            continue  # its keys are those of the axes
        bare = [key for key, one in part["properties"].items() if "description" not in one]
        assert bare in ([], ["name"]), f"{title}: {bare}"


def test_there_are_suites() -> None:
    assert "kimi.yaml" in [path.name for path in SUITES]


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.name)
def test_shipped_suites_load_with_nothing_set(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../specbench/suite/suite.schema.json\n")
    jsonschema.validate(yaml.safe_load(text), suite_schema())
    suite = load_suite(path, {}, {"engine": engines.names(), "dataset": datasets.names()})
    assert suite.variants


def test_the_kimi_suite_is_the_whole_question() -> None:
    suite = load_suite(ROOT / "suites/kimi.yaml", {"DRAFTERS": "/models"})
    assert len(suite.variants) == 14
    assert [variant.cuda_graph for variant in suite.variants if variant.speculation is None] == [True, False]
    cells = {
        (one.speculation.drafter, one.speculation.draft_tokens, one.cuda_graph) for one in suite.variants if one.speculation
    }
    assert cells == {(d, n, g) for d in ("custom", "aq-medai") for n in (4, 8, 16) for g in (True, False)}
    for variant in suite.variants:
        words = list(variant.server.args)
        assert words[words.index("--max-running-requests") + 1] == 48
        if variant.speculation:
            assert (variant.speculation.method, variant.speculation.topk) == ("eagle3", 1)
            assert variant.speculation.steps == variant.speculation.draft_tokens - 1
    assert suite.drafters["custom"].path == "/models/kimi-k2.5-eagle3"
    assert [workload.concurrency for workload in suite.workloads] == [(1, 8, 32)] * 3
