"""Checks a case of kind `verdict`: bare numbers in, verdicts and derived figures out."""

import json
from typing import Any

import pytest

from specbench.analysis.plain import judge_plain


def check_verdict(case: dict[str, Any]) -> None:
    """`verdicts` must all be given and `not_verdicts` must not; `values` hold to three decimals."""
    expected = case["expect"]
    assert set(expected) <= {"verdicts", "not_verdicts", "values"}, f"no check for some of {sorted(expected)}"
    opinion = judge_plain(json.loads("\n".join(case["lines"])), case.get("version"))
    assert set(expected.get("verdicts", ())) - set(opinion.verdicts) == set(), f"not given; given: {opinion.verdicts}"
    assert set(expected.get("not_verdicts", ())) & set(opinion.verdicts) == set(), "given, and must not be"
    for name, value in expected.get("values", {}).items():
        assert name in opinion.values, f"no value '{name}', only {sorted(opinion.values)}"
        check_value(name, opinion.values[name], value)


def check_value(name: str, value: Any, expected: Any) -> None:
    """Numbers to three decimals, also inside lists and mappings; anything else as it is."""
    if isinstance(expected, list):
        assert len(value) == len(expected), name
        for index, (ours, theirs) in enumerate(zip(value, expected, strict=True)):
            check_value(f"{name}[{index}]", ours, theirs)
    elif isinstance(expected, dict):
        for key, wanted in expected.items():
            check_value(f"{name}.{key}", value[key], wanted)
    elif isinstance(expected, float):
        assert value == pytest.approx(expected, abs=0.0005 + 1e-9), name
    else:
        assert value == expected, name
