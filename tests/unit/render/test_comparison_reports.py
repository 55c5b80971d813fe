"""All forms of a comparison: the words as golden files, the machine-read forms against their schemas."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema
from markdown_it import MarkdownIt
from msgspec.structs import replace

from specbench.analysis.comparing import Comparison, Options
from specbench.analysis.comparing.compare import compare_runs
from specbench.render.comparison import github, json_text, junit, markdown, terminal
from specbench.streams import open_result
from tests.unit.analysis.comparing.bed import ALIKE, write_result

DATA = Path(__file__).parents[2] / "data"
SCHEMA = Path(json_text.__file__).with_name("comparison.schema.json")
NOISE = (1, -1, 0.5, -0.5, 0)
FORMS = {"txt": terminal.render, "md": markdown.render, "github": github.render, "junit.xml": junit.render}


@cache
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(DATA / "junit-10.xsd"))


def paces(by: float, noise: float) -> tuple[float, ...]:
    return tuple(pace * by * (1 + noise * sign) for pace, sign in zip(ALIKE, NOISE, strict=True))


@pytest.fixture(scope="module", params=["pass", "fail", "inconclusive", "refused", "simulated"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Comparison]:
    """A name and its comparison; the folders' names are made the same everywhere."""
    name: str = request.param
    tmp_path = tmp_path_factory.mktemp(name)
    head = {"fail": paces(1.05, 0.002), "inconclusive": paces(1.01, 0.01)}.get(name, paces(1.0, 0.001))
    fields: dict[str, Any] = {"simulated": True, "rehearsal": "a shrunk load"} if name == "simulated" else {}
    a = open_result(write_result(tmp_path / "a", {"baseline": ALIKE, "head": ALIKE}, **fields))
    if name == "refused":
        fields = {"environment": {"host": "a|b`<c>"}, "failing": {("head", 1): "request"}}
    runs = {"baseline": paces(1.0, 0.001), "head": head}
    b = open_result(write_result(tmp_path / "b", runs, started_utc="2026-11-29T02:00:00Z", **fields))
    found = compare_runs(replace(a, folder="results/a"), replace(b, folder="results/b"), Options())
    if name == "refused":
        there = f"{tmp_path}/b/"
        variants = [
            replace(
                one,
                refusals=tuple(replace(each, message=each.message.replace(there, "results/b/")) for each in one.refusals),
            )
            for one in found.variants
        ]
        found = replace(found, variants=tuple(variants))
    assert found.verdict == ("pass" if name == "simulated" else name)
    return name, found


@pytest.mark.parametrize("form", FORMS)
def test_golden(form: str, case: tuple[str, Comparison], golden: Any) -> None:
    name, found = case
    golden(f"compare-{name}.{form}", FORMS[form](found))


def test_no_line_of_the_terminal_is_wider_than_a_hundred(case: tuple[str, Comparison]) -> None:
    assert max(map(len, terminal.render(case[1]).splitlines())) <= 100


def test_colour_changes_no_word(case: tuple[str, Comparison]) -> None:
    assert re.sub(r"\x1b\[[0-9;]*m", "", terminal.render(case[1], color=True)) == terminal.render(case[1])


def test_markdown_holds_whole_tables(case: tuple[str, Comparison]) -> None:
    _, found = case
    page = MarkdownIt("commonmark").enable("table").render(markdown.render(found))
    answered = [one for one in found.variants if one.answers]
    assert page.count("<table>") == 2 * len(answered)
    rows = sum(len(one.answers) for one in answered) + 2 * len(answered)
    assert page.count("<tr>") == rows + page.count("<table>")
    assert page.count("<td") == sum(9 * len(one.answers) for one in answered) + 2 * sum(
        1 + len({each.metric for each in one.levels}) for one in answered
    )
    assert "<c>" not in page


def test_junit_keeps_to_the_common_schema(case: tuple[str, Comparison]) -> None:
    text = junit.render(case[1])
    schema = junit_schema()
    schema.validate(text)
    assert not schema.is_valid(text.replace("<testsuite ", "<testsuite odd='1' "))
    root = xmlschema.XMLResource(text).root
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        for kind, many in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(many, "")) == sum(one.find(kind) is not None for one in cases)


def test_json_keeps_to_its_published_schema(case: tuple[str, Comparison]) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    document = json.loads(json_text.render(case[1]))
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    validator.validate(document)
    assert (document["exit_code"], document["verdict"]) == (case[1].exit_code, case[1].verdict)
    assert not validator.is_valid({**document, "verdict": "maybe"})
    assert not validator.is_valid({name: value for name, value in document.items() if name != "variants"})


def test_the_published_schema_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == json_text.schema_text(), "specbench schema --of comparison > it"


def test_simulated_is_said_in_every_form(case: tuple[str, Comparison]) -> None:
    name, found = case
    for render in (*FORMS.values(), json_text.render):
        assert ("SIMULATED" in render(found)) == (name == "simulated")


def test_annotations_hold_one_command_a_line(case: tuple[str, Comparison]) -> None:
    lines = github.render(case[1]).splitlines()
    assert len(lines) == len(case[1].variants)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
