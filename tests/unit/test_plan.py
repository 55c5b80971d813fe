"""Order of launches, their estimate, and how a rehearsal shrinks a suite."""

from collections import Counter
from typing import Any

import pytest

from specbench.plan import launch_estimate_s, make_plan, planned_slot, rehearse
from specbench.suite import Expected, Hardware, Model, Server, Suite, Variant, Warmup, Workload


def a_suite(**changes: Any) -> Suite:
    variants = tuple(Variant(name=name, engine="sglang", server=Server(tensor_parallel=2)) for name in "abc")
    fields: dict[str, Any] = {
        "name": "s",
        "path": "s.yaml",
        "model": Model(path="m"),
        "variants": variants,
        "baseline": "a",
        "workloads": (Workload(name="w", concurrency=(1, 8), max_output_tokens=100),),
        "expected": Expected(startup_s=60, per_user_tps=10),
    }
    return Suite(**(fields | changes))


def blocks(suite: Suite) -> list[str]:
    trials = make_plan(suite).trials
    size = len(suite.variants)
    return ["".join(trial.variant for trial in trials[start : start + size]) for start in range(0, len(trials), size)]


def test_one_launch_keeps_the_file_s_order() -> None:
    assert blocks(a_suite()) == ["abc"]


def test_every_second_block_is_the_reverse_of_the_one_before() -> None:
    found = blocks(a_suite(launches=6, seed=3))
    assert found[0] == "abc"
    assert all(found[index + 1] == found[index][::-1] for index in (0, 2, 4))
    assert all(sorted(block) == ["a", "b", "c"] for block in found)


def test_the_order_follows_the_seed_alone() -> None:
    assert blocks(a_suite(launches=6, seed=3)) == blocks(a_suite(launches=6, seed=3))
    assert len({tuple(blocks(a_suite(launches=6, seed=seed))) for seed in range(8)}) > 1


def test_trials_are_counted() -> None:
    trials = make_plan(a_suite(launches=3)).trials
    assert [trial.order_index for trial in trials] == list(range(9))
    assert Counter(trial.variant for trial in trials) == {"a": 3, "b": 3, "c": 3}
    assert len({trial.folder for trial in trials}) == 9
    assert trials[-1].folder == f"{trials[-1].variant}.launch2"


def test_the_estimate_is_start_up_and_every_level() -> None:
    """4 requests a stream at both levels: 2 × 4 × 100 tokens at 10 tok/s."""
    suite = a_suite()
    assert launch_estimate_s(suite, suite.variants[0]) == pytest.approx(60 + 80)
    assert make_plan(suite).estimate_s == pytest.approx(3 * 140)


def test_a_rehearsal_shrinks_the_load() -> None:
    suite, sentence = rehearse(a_suite(launches=3), full=False)
    workload = suite.workloads[0]
    assert [workload.level_request_count(one) for one in workload.concurrency] == [4, 8]
    assert (workload.max_output_tokens, suite.launches) == (32, 1)
    assert suite.warmup == Warmup(request_count=1, max_output_tokens=8)
    for words in (
        "1 launch a variant",
        "4 requests a level",
        "3 servers side by side",
        "32 output tokens",
        "1 request with 8 tokens",
    ):
        assert words in sentence


def test_a_rehearsal_never_lengthens_an_answer() -> None:
    suite, _ = rehearse(a_suite(workloads=(Workload(name="w", max_output_tokens=5),)), full=False)
    assert suite.workloads[0].max_output_tokens == 5


def test_a_full_rehearsal_keeps_the_load() -> None:
    whole = a_suite(launches=3)
    suite, sentence = rehearse(whole, full=True)
    assert (suite.workloads, suite.warmup, suite.launches) == (whole.workloads, whole.warmup, 3)
    assert sentence.startswith("the whole load")


def test_slots() -> None:
    suite = a_suite(hardware=Hardware(gpu_count=8))
    assert planned_slot(suite, suite.variants[0]).gpu_ids == (0, 1)
    assert planned_slot(a_suite(), suite.variants[0]).gpu_ids == ()
