"""`slo` and `saturate` in a suite file."""

from pathlib import Path

import msgspec
import pytest

from specbench.errors import SuiteError
from specbench.suite import Suite, load_suite

HEAD = "name: s\nmodel: m\nengine: sglang\nvariants: [{name: plain}]\nworkloads:\n"


def load(tmp_path: Path, *workloads: str) -> Suite:
    path = tmp_path / "s.yaml"
    path.write_text(HEAD + "".join(f"  - {{{one}}}\n" for one in workloads))
    return load_suite(path, {})


def test_a_closed_loop_gets_more_concurrencies(tmp_path: Path) -> None:
    (chat,) = load(
        tmp_path, "name: chat, slo: {ttft_s: 1}, saturate: {max_streams_count: 20}, concurrency: [1, 3]"
    ).workloads
    assert chat.concurrency == (1, 3, 6, 12, 20)
    assert chat.sweep_name == "chat"


def test_an_open_loop_gets_a_workload_a_rate_and_survives_the_store(tmp_path: Path) -> None:
    sweep = "saturate: {max_rate_rps: 4, step_ratio: 3}"
    suite = load(tmp_path, f"name: chat, slo: {{tpot_s: 0.05}}, arrival: {{rate_rps: 0.5, duration_s: 60}}, {sweep}")
    assert [one.name for one in suite.workloads] == ["chat-0.5rps", "chat-1.5rps", "chat-4rps"]
    assert [one.level_request_count(0) for one in suite.workloads] == [30, 90, 240]
    assert {one.sweep_name for one in suite.workloads} == {"chat"}
    assert msgspec.convert(msgspec.to_builtins(suite), Suite) == suite


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        ("saturate: {max_streams_count: 8}", "'saturate' needs an 'slo'"),
        ("slo: {}", "'slo' states nothing"),
        ("slo: {ttft_s: 1}, saturate: {}", "'saturate' needs 'max_streams_count'"),
        ("slo: {ttft_s: 1}, saturate: {max_rate_rps: 3}", "'max_rate_rps' has no meaning in a closed loop"),
        ("slo: {ttft_s: 1}, saturate: {max_streams_count: 1}", "1 is not above the first level, 1"),
        ("slo: {ttft_s: 1}, saturate: {max_streams_count: 8}, concurrency: [2, 8]", "8 is not above the first level, 8"),
        (
            "slo: {ttft_s: 1}, saturate: {max_rate_rps: 2}, arrival: {rate_rps: 4, duration_s: 1}",
            "2 is not above the first level, 4",
        ),
        (
            "slo: {ttft_s: 1}, saturate: {max_streams_count: 2}, arrival: {rate_rps: 4, duration_s: 1}",
            "'max_streams_count' has no meaning in an open loop",
        ),
        ("slo: {ttft_s: 1}, saturate: {max_rate_rps: 2}, arrival: {trace: t.jsonl}", "a trace has none"),
        ("slo: {ttft_s: 1}, saturate: {max_streams_count: 8, step_ratio: 1}", "step_ratio"),
        ("slo: {ttft_s: 0}", "ttft_s"),
    ],
)
def test_what_makes_no_sense_is_told_once(tmp_path: Path, workload: str, sentence: str) -> None:
    with pytest.raises(SuiteError) as refusal:
        load(tmp_path, f"name: chat, {workload}")
    (problem,) = refusal.value.problems
    assert sentence in problem.message


def test_a_level_that_is_called_like_another_workload_is_refused(tmp_path: Path) -> None:
    sweep = "name: chat, slo: {ttft_s: 1}, arrival: {rate_rps: 1, duration_s: 9}, saturate: {max_rate_rps: 2}"
    with pytest.raises(SuiteError, match="'chat-2rps', the name of another workload"):
        load(tmp_path, sweep, "name: chat-2rps")
