"""A speed-up over several launches: its interval, its verdict, and the doubt where launches are few."""

import math
from collections.abc import Sequence

import pytest

from specbench.analysis import Judgement, stats
from specbench.analysis.judge import judge_run
from specbench.render import markdown, terminal
from specbench.suite import Workload
from tests.unit.analysis.runs import run, steady_requests, suite, trial, variant

TWO = suite([variant("plain"), variant("spec")])
LAUNCHES = (1.0, 1.02, 0.99, 1.01)


def judged(ratios: Sequence[float], asked: Sequence[str] = ("chat",)) -> Judgement:
    """Launches of both; `ratios`: the seconds of a step with speculation over those without, by launch."""
    trials = []
    for index, (pace, ratio) in enumerate(zip(LAUNCHES, ratios, strict=False)):
        for name, step_s in (("plain", 0.05 * pace), ("spec", 0.05 * pace * ratio)):
            requests = [
                one for place, workload in enumerate(asked) for one in steady_requests(workload, 1, step_s, 1, 100.0 * place)
            ]
            trials.append(trial(name, requests, launch_index=index))
    workloads = [Workload(name=name) for name in asked]
    return judge_run(run(suite(TWO.variants, workloads), trials))


def test_the_interval_is_that_of_pairs_of_launches() -> None:
    (row,) = [one for one in judged((0.7, 0.71, 0.69, 0.70)).summaries if one.variant == "spec"]
    logs = [
        math.log((0.1 + pace) / (0.1 + pace * ratio))  # 20 steps of 0.05 s after a TTFT of 0.1 s
        for pace, ratio in zip(LAUNCHES, (0.7, 0.71, 0.69, 0.70), strict=True)
    ]
    low, high = stats.interval(stats.paired(logs), 0.01)
    assert (row.speedup_low_ratio, row.speedup_high_ratio) == pytest.approx((math.exp(low), math.exp(high)))
    assert row.verdict == "healthy"


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((0.98, 1.03, 0.99, 1.02), "not_significant"),
        ((0.95, 1.03, 0.94, 0.99), "not_significant"),
        ((1.05, 1.051, 1.049, 1.05), "slower_than_baseline"),
        ((0.96, 0.961, 0.959, 0.96), "healthy"),
    ],
)
def test_the_verdict_follows_the_interval(ratios: Sequence[float], verdict: str) -> None:
    judgement = judged(ratios)
    (row,) = [one for one in judgement.summaries if one.variant == "spec"]
    assert row.verdict == verdict
    assert [one.verdicts for one in judgement.verdicts if one.variant == "spec"] == [(verdict,)]


def test_what_is_not_told_apart_reads_so_everywhere() -> None:
    judgement = judged((0.9, 1.2, 0.95, 1.1))
    (text,) = [one.sentence for one in judgement.verdicts if one.variant == "spec"]
    assert text.startswith("can't be told from the baseline by these launches: 0.9")
    for render in (terminal.render, markdown.render):
        assert "no difference" in render(judgement)
        assert "99 % interval over pairs of launches" in render(judgement)
    assert "few_launches" not in [one.code for one in judgement.findings]


@pytest.mark.parametrize(
    ("count", "ratio", "doubted"), [(1, 0.99, True), (2, 1.01, True), (1, 0.7, False), (3, 0.99, False)]
)
def test_few_launches_near_one_are_a_finding(count: int, ratio: float, doubted: bool) -> None:
    judgement = judged((ratio,) * count)
    (row,) = [one for one in judgement.summaries if one.variant == "spec"]
    assert (row.speedup_low_ratio is None) == (count < 3)
    assert ("few_launches" in [one.code for one in judgement.findings]) == doubted


def test_all_workloads_together_have_an_interval_too() -> None:
    overview = judged((0.7, 0.71, 0.69, 0.70), ("chat", "code")).overview
    (row,) = [one for one in overview if one.variant == "spec"]
    assert row.speedup_low_ratio is not None
    assert row.speedup_high_ratio is not None
    assert 1 < row.speedup_low_ratio < (row.speedup_ratio or 0) < row.speedup_high_ratio
