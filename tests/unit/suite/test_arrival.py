"""`arrival` in a suite file: an open loop, and what can't stand beside it."""

from pathlib import Path

import msgspec
import pytest

from specbench.errors import SuiteError
from specbench.plan import launch_estimate_s, rehearse
from specbench.suite import Suite, load_suite

HEAD = "name: s\nmodel: m\nengine: sglang\nvariants: [{name: plain}]\nworkloads:\n"


def load(tmp_path: Path, workload: str) -> Suite:
    path = tmp_path / "s.yaml"
    path.write_text(HEAD + f"  - {{name: w, {workload}}}\n")
    return load_suite(path, {})


def test_an_open_loop_is_one_level_and_survives_the_store(tmp_path: Path) -> None:
    suite = load(tmp_path, "arrival: {rate_rps: 4, duration_s: 30}")
    (workload,) = suite.workloads
    assert workload.arrival is not None
    assert workload.concurrency == (0,)
    assert workload.level_request_count(0) == 120
    assert msgspec.convert(msgspec.to_builtins(suite), Suite) == suite


def test_its_length_is_in_the_estimate(tmp_path: Path) -> None:
    suite = load(tmp_path, "arrival: {rate_rps: 4, request_count: 40}, max_output_tokens: 60")
    assert launch_estimate_s(suite, suite.variants[0]) == suite.expected.startup_s + 10 + 60 / 30


def test_a_rehearsal_shrinks_it(tmp_path: Path) -> None:
    suite, _ = rehearse(load(tmp_path, "arrival: {rate_rps: 4, duration_s: 30}"), False)
    assert suite.workloads[0].level_request_count(0) == 4


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        ("arrival: {duration_s: 3}", "needs 'rate_rps', or 'trace'"),
        ("arrival: {rate_rps: 3}", "needs 'duration_s' or 'request_count'"),
        ("arrival: {rate_rps: 3, duration_s: 1, request_count: 2}", "has both"),
        ("arrival: {rate_rps: 0, duration_s: 1}", "rate_rps"),
        ("arrival: {rate_rps: 3, duration_s: 1, burstiness: 2}", "belongs to process: gamma"),
        ("arrival: {rate_rps: 3, duration_s: 1, process: normal}", "normal"),
        ("arrival: {trace: t.jsonl, rate_rps: 3}", "'rate_rps' has no meaning with 'trace'"),
        ("arrival: {rate_rps: 3, duration_s: 1}, concurrency: [4]", "an open loop holds no number of streams"),
        ("arrival: {rate_rps: 3, duration_s: 1}, request_count: 4", "write it under 'arrival'"),
        ("arrival: {rate_rps: 3, duration_s: 1}, rate_cap_rps: 4", "its rate is the cap"),
        ("concurrency: [0]", "concurrency"),
    ],
)
def test_what_makes_no_sense_is_told_once(tmp_path: Path, workload: str, sentence: str) -> None:
    with pytest.raises(SuiteError) as refusal:
        load(tmp_path, workload)
    (problem,) = refusal.value.problems
    assert sentence in problem.message
    assert problem.line == 6
