"""Every dataset file keeps the promise of `datasets.Dataset`."""

from pathlib import Path

import pytest

from specbench import datasets
from specbench.errors import SpecbenchError
from specbench.suite import Workload


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "own.jsonl"
    file.write_text(
        "".join(
            f'{{"id": "{category}-{number}", "category": "{category}", "prompt": "{category} {number}"}}\n'
            for category in ("chat", "code")
            for number in range(6)
        ),
        encoding="utf-8",
    )
    return str(file)


def workload(name: str, path: str, *categories: str) -> Workload:
    return Workload(name="w", dataset=name, path=path if name == "jsonl" else None, categories=categories)


def test_both_are_found() -> None:
    assert {"builtin", "jsonl"} <= set(datasets.names())


def test_an_unknown_one_is_named() -> None:
    with pytest.raises(SpecbenchError, match=r"dataset 'buildin' does not exist; there are: builtin, jsonl"):
        datasets.get("buildin")


@pytest.mark.parametrize("name", datasets.names())
class TestEveryDataset:
    def test_gives_as_many_as_asked_also_beyond_its_size(self, name: str, path: str) -> None:
        source = datasets.get(name)
        for count in (0, 1, 7, 500):
            assert len(source.prompts(workload(name, path), seed=1, count=count)) == count

    def test_same_seed_same_prompts_and_a_prefix_at_every_length(self, name: str, path: str) -> None:
        source = datasets.get(name)
        long = source.prompts(workload(name, path), seed=5, count=60)
        assert source.prompts(workload(name, path), seed=5, count=60) == long
        assert source.prompts(workload(name, path), seed=5, count=9) == long[:9]
        assert source.prompts(workload(name, path), seed=6, count=60) != long

    def test_draws_from_the_categories_in_turn(self, name: str, path: str) -> None:
        got = datasets.get(name).prompts(workload(name, path, "code", "chat"), seed=2, count=12)
        assert [prompt.category for prompt in got] == ["code", "chat"] * 6
        assert len({prompt.id for prompt in got}) == 12

    def test_an_id_means_one_prompt(self, name: str, path: str) -> None:
        got = datasets.get(name).prompts(workload(name, path), seed=0, count=500)
        assert len({prompt.id for prompt in got}) == len(set(got))
        assert all(prompt.turns and all(prompt.turns) for prompt in got)

    def test_an_unknown_category_is_refused(self, name: str, path: str) -> None:
        with pytest.raises(SpecbenchError, match=r"category 'cod' does not exist; did you mean 'code'\?"):
            datasets.get(name).prompts(workload(name, path, "cod"), seed=0, count=1)
