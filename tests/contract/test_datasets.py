"""Every dataset file keeps the promise of `datasets.Dataset`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbench import datasets
from specbench.errors import SpecbenchError
from specbench.suite import Workload

ROWS: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "jsonl": lambda kind, number: {"id": f"{kind}-{number}", "category": kind, "prompt": f"{kind} {number}"},
    "mt_bench": lambda kind, number: {"question_id": f"{kind}{number}", "category": kind, "turns": [kind, str(number)]},
    "spec_bench": lambda kind, number: {"question_id": f"{kind}{number}", "category": kind, "turns": [f"{kind} {number}"]},
    "speed_bench": lambda kind, number: {"question_id": f"{kind}{number}", "category": kind, "turns": [f"{kind} {number}"]},
    "math500": lambda kind, number: {"unique_id": f"{kind}/{number}", "subject": kind, "problem": f"{kind} {number}"},
    "gsm8k": lambda kind, number: {"question": f"{kind} {number}"},
    "humaneval": lambda kind, number: {"task_id": f"{kind}/{number}", "prompt": f"{kind} {number}"},
    "sharegpt": lambda kind, number: {"id": "x", "conversations": [{"from": "human", "value": f"{kind} {number}"}]},
}
"""A file of each set that reads one: a row of a category."""
ONE_CATEGORY = ("gsm8k", "humaneval", "sharegpt", "random")


@pytest.fixture
def path(tmp_path: Path, name: str) -> str | None:
    if name not in ROWS:
        return None
    file = tmp_path / "own.jsonl"
    rows = (ROWS[name](kind, number) for kind in ("chat", "code") for number in range(6))
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(file)


def workload(name: str, path: str | None, *categories: str) -> Workload:
    return Workload(name="w", dataset=name, path=path, categories=categories)


def test_both_are_found() -> None:
    assert {"builtin", "jsonl"} <= set(datasets.names())


def test_an_unknown_one_is_named() -> None:
    with pytest.raises(SpecbenchError, match=r"dataset 'buildin' does not exist; there are: builtin, gsm8k, "):
        datasets.get("buildin")


@pytest.mark.parametrize("name", datasets.names())
class TestEveryDataset:
    def test_gives_as_many_as_asked_also_beyond_its_size(self, name: str, path: str | None) -> None:
        source = datasets.get(name)
        for count in (0, 1, 7, 500):
            assert len(source.prompts(workload(name, path), seed=1, count=count)) == count

    def test_same_seed_same_prompts_and_a_prefix_at_every_length(self, name: str, path: str | None) -> None:
        source = datasets.get(name)
        long = source.prompts(workload(name, path), seed=5, count=60)
        assert source.prompts(workload(name, path), seed=5, count=60) == long
        assert source.prompts(workload(name, path), seed=5, count=9) == long[:9]
        assert source.prompts(workload(name, path), seed=6, count=60) != long

    def test_draws_from_the_categories_in_turn(self, name: str, path: str | None) -> None:
        if name in ONE_CATEGORY:
            pytest.skip("has one category")
        got = datasets.get(name).prompts(workload(name, path, "code", "chat"), seed=2, count=12)
        assert [prompt.category for prompt in got] == ["code", "chat"] * 6
        assert len({prompt.id for prompt in got}) == 12

    def test_an_id_means_one_prompt(self, name: str, path: str | None) -> None:
        got = datasets.get(name).prompts(workload(name, path), seed=0, count=500)
        assert len({prompt.id for prompt in got}) == len(set(got))
        assert all(prompt.turns and all(prompt.turns) for prompt in got)

    def test_an_unknown_category_is_refused(self, name: str, path: str | None) -> None:
        hint = f"there are: {name}" if name in ONE_CATEGORY else r"did you mean 'code'\?"
        with pytest.raises(SpecbenchError, match=f"category 'cod' does not exist; {hint}"):
            datasets.get(name).prompts(workload(name, path, "cod"), seed=0, count=1)
