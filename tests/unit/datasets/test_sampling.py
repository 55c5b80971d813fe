"""Which prompts a workload gets: seeded, spread over its categories, the same at every length."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbench.datasets import Prompt, digest, spread
from specbench.errors import SpecbenchError


def pile(category: str, size: int) -> list[Prompt]:
    return [Prompt(id=f"{category}-{number}", category=category, turns=(f"{category} {number}",)) for number in range(size)]


SOURCE = pile("chat", 5) + pile("code", 3) + pile("math", 4)


def ids(prompts: tuple[Prompt, ...]) -> list[str]:
    return [prompt.id for prompt in prompts]


@given(seed=st.integers(0, 1000), short=st.integers(0, 40), longer=st.integers(0, 40))
def test_the_first_prompts_do_not_depend_on_the_count(seed: int, short: int, longer: int) -> None:
    assert spread(SOURCE, (), seed, short) == spread(SOURCE, (), seed, short + longer)[:short]


@given(seed=st.integers(0, 1000))
def test_every_prompt_comes_once_before_any_comes_again(seed: int) -> None:
    twice = ids(spread(SOURCE, (), seed, 2 * len(SOURCE)))
    assert sorted(twice[: len(SOURCE)]) == sorted(ids(tuple(SOURCE)))
    assert twice[: len(SOURCE)] == twice[len(SOURCE) :]


def test_categories_take_turns() -> None:
    got = [prompt.category for prompt in spread(SOURCE, ("math", "chat"), 7, 8)]
    assert got == ["math", "chat"] * 4


def test_a_category_named_twice_counts_once() -> None:
    assert spread(SOURCE, ("code", "code"), 0, 3) == spread(SOURCE, ("code",), 0, 3)


def test_the_seed_decides_the_order() -> None:
    orders = {tuple(ids(spread(SOURCE, (), seed, len(SOURCE)))) for seed in range(20)}
    assert len(orders) > 15


def test_a_category_keeps_its_order_whatever_stands_beside_it() -> None:
    alone = ids(spread(SOURCE, ("code",), 3, 3))
    together = [prompt.id for prompt in spread(SOURCE, (), 3, 12) if prompt.category == "code"]
    assert alone == together


def test_an_unknown_category_names_the_nearest() -> None:
    with pytest.raises(SpecbenchError) as caught:
        spread(SOURCE, ("chat", "maths"), 0, 1)
    assert str(caught.value) == "category 'maths' does not exist; did you mean 'math'? There are: chat, code, math"


def test_an_unknown_category_far_from_any() -> None:
    with pytest.raises(SpecbenchError, match=r"^category 'zzz' does not exist; there are: chat, code, math$"):
        spread(SOURCE, ("zzz",), 0, 1)


def test_the_digest_tells_any_change() -> None:
    changed = [SOURCE[0], Prompt(id="chat-1", category="chat", turns=("chat", "1")), *SOURCE[2:]]
    sums = [digest(SOURCE), digest(SOURCE[::-1]), digest(SOURCE[:-1]), digest(changed)]
    assert len(set(sums)) == len(sums)
    assert all(len(left) == len(right) == 64 for left, right in pairwise(sums))
    assert digest(SOURCE) == digest(list(SOURCE))
