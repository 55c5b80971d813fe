"""What a log's acceptance lines give reason to doubt, on lines as SGLang writes them."""

from statistics import stdev

import pytest

from specbench.analysis.log_report import LogStudy, study
from specbench.analysis.stats import t_quantile
from specbench.render.log_report import render


def read(*lines: str) -> LogStudy:
    found = study(lines)
    assert found is not None
    return found


def decode(running: int, length: float) -> str:
    return (
        f"[2026-03-01 10:04:00 TP0] Decode batch, #running-req: {running}, #token: 900, token usage: 0.01, "
        f"accept len: {length:.2f}, accept rate: {(length - 1) / 3:.2f}, cuda graph: True, "
        f"gen throughput (token/s): {60 * running + length:.2f}, #queue-req: 0"
    )


ARGUMENTS = "[2026-03-01 10:00:00] server_args=ServerArgs(speculative_algorithm='EAGLE3', speculative_num_draft_tokens=4)"


def test_speculation_switched_off_in_large_batches() -> None:
    pairs = ((4, 2.6), (4, 2.7), (8, 2.5), (40, 1.0), (44, 1.0), (48, 1.0))
    found = read(ARGUMENTS, *(decode(*pair) for pair in pairs))
    assert found.verdicts == ("spec_fallback_engaged",)
    assert "from 40 running requests" in found.findings[0].message
    assert f"{(4 * 2.6 + 4 * 2.7 + 8 * 2.5) / 16:.2f}" in found.findings[0].message
    for other in (((4, 2.6), (8, 1.0), (9, 1.0), (40, 2.5)), ((4, 2.6), (4, 2.7), (40, 1.0))):
        assert read(ARGUMENTS, *(decode(*pair) for pair in other)).verdicts == ("healthy",)


def test_longer_than_the_draft_allows() -> None:
    found = read(ARGUMENTS, decode(1, 2.0), decode(1, 9.99))
    assert found.verdicts == ("accept_length_out_of_range",)
    assert read(ARGUMENTS, decode(1, 4.0), decode(2, 4.0)).verdicts == ("acceptance_at_ceiling",)


def test_data_parallel_ranks_are_told() -> None:
    lines = [decode(4, 2.0).replace("TP0", f"DP{rank} TP{rank}") for rank in (0, 1)]
    assert read(ARGUMENTS, *lines).dp_ranks == (0, 1)


def test_ranks_that_write_the_same_do_not_narrow_the_error_bound() -> None:
    lengths = (2.0, 2.4, 2.9, 2.2)
    once = [decode(4, length) for length in lengths]
    twice = [text for line in once for text in (line, line.replace("TP0", "TP1"))]
    one, two = read(ARGUMENTS, *once), read(ARGUMENTS, *twice)
    assert one.pooled_accept_length is not None
    assert one.pooled_accept_length == two.pooled_accept_length
    assert one.pooled_accept_length.error_length == pytest.approx(t_quantile(0.975, 3) * stdev(lengths) / 2)
    assert (two.record_count, sum(bucket.record_count for bucket in two.buckets)) == (8, 4)


def test_a_server_that_runs_requests_and_gives_nothing_is_wedged() -> None:
    stuck = [decode(4, 2.5).replace("242.50", "0.00").replace("900", f"90{place}") for place in range(4)]
    assert read(ARGUMENTS, *[decode(running, 2.5) for running in (3, 4, 5)], *stuck[:2]).verdicts == ("healthy",)
    found = read(ARGUMENTS, *[decode(running, 2.5) for running in (3, 4, 5)], *stuck)
    assert found.verdicts == ("engine_wedged",)
    assert "last 4 decode lines" in found.findings[0].message
    assert read(ARGUMENTS, *stuck, decode(4, 2.5)).verdicts == ("healthy",)


def test_what_to_do_without_graphs_and_with_some() -> None:
    off = [decode(running, 2.5).replace("graph: True", "graph: False") for running in (3, 4)]
    remedies = [read(ARGUMENTS, *lines).findings[0].remedy for lines in (off, [*off, decode(5, 2.5)])]
    assert ["--disable-cuda-graph" in one for one in remedies] == [True, False]


def test_a_limit_that_the_server_set_itself_is_told() -> None:
    reset = "[2026-03-01 10:00:01 TP0] Max running requests is reset to 48 for speculative decoding."
    found = read(ARGUMENTS, reset, decode(4, 2.5), decode(5, 2.4))
    assert (found.verdicts, [one.code for one in found.findings]) == (("healthy",), ["concurrency_capped"])
    assert "line 2" in found.findings[0].message


def test_a_flag_is_not_broken_at_the_end_of_a_line() -> None:
    found = read(ARGUMENTS, decode(3, 2.5), decode(4, 2.5).replace("graph: True", "graph: False"))
    for columns in range(40, 100):
        assert "(--cuda-graph-max-bs)" in render(found, columns)


@pytest.mark.parametrize(("limit", "code"), [("4", "spec_fallback_engaged"), ("None", "no_drafts_after_first_request")])
def test_drafts_that_vllm_was_told_to_stop_are_no_fault(limit: str, code: str) -> None:
    config = (
        "[core.py:69] Initializing a V1 LLM engine (v0.10.0) with config: model='m', speculative_config=SpeculativeConfig("
        f"method='eagle', num_spec_tokens=3, disable_by_batch_size={limit})"
    )
    drafts = (
        "[metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: 8.50 tokens/s, Drafted "
        "throughput: 17.00 tokens/s, Accepted: 90 tokens, Drafted: 180 tokens, Per-position acceptance rate: 0.700, "
        "0.450, 0.350, Avg Draft acceptance rate: 50.0%"
    )
    engine = (
        "[loggers.py:118] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 50.0 tokens/s, "
        "Running: 8 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.4%, Prefix cache hit rate: 0.0%"
    )
    lines = [f"INFO 11-29 14:11:{second:02d} {text}" for second, text in enumerate([config, drafts, *[engine] * 6])]
    found = study(lines, "vllm")
    assert found is not None
    assert code in [one.code for one in found.findings]
