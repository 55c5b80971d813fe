"""Decisions on plain values."""

from typing import Any

import pytest

from specbench.analysis import verdicts
from specbench.analysis.breakeven import break_even_length, efficiency_ratio
from specbench.analysis.plain import judge_plain


def test_break_even_is_where_the_speedup_would_be_one() -> None:
    length = break_even_length(90.0, 57.0, 2.1)
    assert length == pytest.approx(90 * 2.1 / 57)
    assert break_even_length(None, 57.0, 2.1) is None
    assert break_even_length(90.0, 0.0, 2.1) is None


def test_efficiency() -> None:
    assert efficiency_ratio(1.2, 2.4) == pytest.approx(0.5)
    assert efficiency_ratio(None, 2.4) is None


@pytest.mark.parametrize(("lengths", "dead"), [([1.0, 1.05], True), ([1.0, 1.06], False), ([], False), ([1.3, 1.0], False)])
def test_dead_means_every_sample(lengths: list[float], dead: bool) -> None:
    assert verdicts.is_dead(lengths) is dead


@pytest.mark.parametrize(
    ("ratio", "wanted", "verdict"),
    [
        (0.0, None, "graphs_off"),
        (0.0, True, "graphs_off"),
        (0.0, False, None),
        (0.5, True, "mixed_graph_regimes"),
        (0.99, None, None),
        (1.0, True, None),
        (None, True, None),
    ],
)
def test_graphs(ratio: float | None, wanted: bool | None, verdict: str | None) -> None:
    assert verdicts.graph_verdict(ratio, wanted) == verdict


@pytest.mark.parametrize(
    ("stated", "running", "queue", "limit"),
    [
        (48, None, None, 48),
        (128, 48, 80, None),
        (None, 48, 80, 48),
        (None, 48, 0, None),
        (None, 128, 3, None),
        (None, None, 9, None),
    ],
)
def test_admission_limit(stated: int | None, running: int | None, queue: int | None, limit: int | None) -> None:
    assert verdicts.admission_limit(128, stated, running, queue) == limit


def test_admission_is_the_same_when_both_hold_what_is_offered() -> None:
    assert verdicts.same_admission(32, None, 48)
    assert verdicts.same_admission(128, 48, 48)
    assert not verdicts.same_admission(128, None, 48)


def test_a_cause_comes_before_its_symptom() -> None:
    assert verdicts.foremost({"slower_than_baseline", "dead_drafter"}) == "dead_drafter"
    assert verdicts.in_order({"healthy", "graphs_off"}) == ("graphs_off",)
    assert verdicts.in_order({"healthy", "unknown"}) == ("healthy",)


def test_acceptance_never_makes_a_verdict_of_speed() -> None:
    numbers = {
        "baseline_output_tps": {"1": 100.0},
        "rows": [
            {"concurrency": 1, "output_tps": 90.0, "accept_length": 3.6, "accept_rate": 0.9},
            {"concurrency": 1, "output_tps": 130.0, "accept_length": 2.0, "accept_rate": 0.3},
        ],
    }
    opinion = judge_plain(numbers)
    assert [row["verdict"] for row in opinion.values["rows"]] == ["slower_than_baseline", "healthy"]
    assert "accept_rate_misleading" in opinion.verdicts


def test_samples_without_a_baseline_are_judged_by_what_they_show() -> None:
    line = {"accept_length": 2.4, "running_requests": 4, "gen_throughput_tps": 200.0}
    assert judge_plain({"samples": [{**line, "cuda_graph": True}]}).verdicts == ("healthy",)
    assert judge_plain({"samples": [{**line, "cuda_graph": False}]}).verdicts == ("graphs_off",)
    mixed = [{**line, "cuda_graph": True}, {**line, "cuda_graph": False}]
    assert judge_plain({"samples": mixed}).verdicts == ("mixed_graph_regimes",)
    off = {"samples": [{**line, "cuda_graph": False}], "launch": "--tp-size 8 --disable-cuda-graph"}
    assert "graphs_off" not in judge_plain(off).verdicts


def test_samples_that_carry_no_length_although_drafts_were_asked_for() -> None:
    numbers = {"num_draft_tokens": 4, "samples": [{"running_requests": 1, "gen_throughput_tps": 90.0}]}
    assert "speculation_inactive" in judge_plain(numbers).verdicts


def test_a_stated_limit_counts_before_a_seen_one() -> None:
    arms = {
        "client_concurrency": 64,
        "baseline": {"max_running_seen": 64, "max_queue_seen": 0, "output_tps": 100.0},
        "speculative": {"launch": ["--max-running-requests=32"], "output_tps": 80.0},
    }
    opinion = judge_plain(arms)
    assert opinion.verdicts == ("not_comparable", "concurrency_capped")
    assert opinion.values == {"admission_limit": 32, "speedup_if_forced": 0.8, "speedup": None}


def test_numbers_of_no_known_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="needs `samples`"):
        judge_plain({"tok/s": 3})


def sampled(*pairs: tuple[float | None, int, float], **fields: Any) -> tuple[str, ...]:
    """Samples of accept length, running requests, tok/s."""
    named = [{"accept_length": a, "running_requests": b, "gen_throughput_tps": c} for a, b, c in pairs]
    return judge_plain({"samples": named, "num_steps": 3, "num_draft_tokens": 4} | fields).verdicts


def test_what_only_the_order_of_samples_tells() -> None:
    falling = [(3.2, 4, 90.0), (3.1, 4, 90.0), (2.8, 4, 80.0), (2.7, 4, 80.0), (2.2, 4, 70.0), (2.1, 4, 70.0)]
    assert "acceptance_declining" in sampled(*falling)
    assert "acceptance_declining" not in sampled(*[(3.0 + 0.1 * (place % 2), 4, 90.0) for place in range(9)])
    assert sampled((2.1, 4, 90.0), *[(2.1, 4, 0.0)] * 3) == ("engine_wedged",)
    assert "engine_wedged" not in sampled((2.1, 4, 90.0), *[(2.1, 0, 0.0)] * 3)


def test_speculation_that_stops_above_a_batch_size_is_no_dead_drafter() -> None:
    found = sampled((2.4, 4, 90.0), (2.3, 8, 150.0), (1.0, 40, 400.0), (1.0, 48, 420.0))
    assert "spec_fallback_engaged" in found
    assert "dead_drafter" not in found
    assert "spec_fallback_engaged" not in sampled((2.4, 40, 90.0), (2.3, 8, 150.0), (1.0, 4, 40.0), (1.0, 48, 420.0))


def test_acceptance_at_the_ceiling() -> None:
    assert "acceptance_at_ceiling" in sampled((3.98, 4, 90.0), (4.0, 4, 90.0))
    assert "acceptance_at_ceiling" not in sampled((3.98, 4, 90.0), (3.0, 4, 90.0))
    assert "acceptance_at_ceiling" not in sampled((3.98, 4, 90.0), num_steps=None, topk=4, num_draft_tokens=4)


def test_a_deeper_draft_that_is_slower() -> None:
    rows = [
        {"concurrency": 8, "num_draft_tokens": tokens, "output_tps": tps, "accept_length": length}
        for tokens, tps, length in ((4, 900.0, 2.1), (8, 700.0, 2.6))
    ]
    assert "draft_depth_too_large" in judge_plain({"rows": rows, "baseline_output_tps": {"8": 600.0}}).verdicts
    rows[1]["output_tps"] = 890.0
    assert judge_plain({"rows": rows, "baseline_output_tps": {"8": 600.0}}).verdicts == ("healthy",)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"requests": [{"ttft_ms": 900, "e2e_ms": 1000}, *[{"ttft_ms": 90, "e2e_ms": 500}] * 4]}, "warmup_in_window"),
        ({"requests": [{"ttft_ms": 960, "e2e_ms": 1000, "output_tokens": 200}] * 3}, "stream_buffered"),
        ({"requests": [{"drafted": 12}, {"drafted": 0}, {"drafted": 0}]}, "no_drafts_after_first_request"),
        ({"mean_itl_ms": 30.2, "mean_tpot_ms": 13.7, "accept_length": 2.24, "output_tps": 556.0}, "itl_is_per_chunk"),
        ({"exit_code": -9}, "server_died"),
        ({"no_progress_s": 400, "running_requests": 8}, "server_hung"),
        (
            {"samples": [{"running_requests": 1, "transfer_requests": 12, "accept_length": 2.0}] * 4},
            "decode_starved_by_transfer",
        ),
    ],
)
def test_numbers_about_the_measurement(numbers: dict[str, object], expected: str) -> None:
    assert expected in judge_plain(numbers).verdicts


@pytest.mark.parametrize(
    "numbers",
    [
        {"requests": [{"ttft_ms": 95, "e2e_ms": 520, "output_tokens": 200, "drafted": 3}] * 5},
        {"requests": [{"drafted": 12}, {"drafted": 0}, {"drafted": 4}]},
        {"mean_itl_ms": 13.9, "mean_tpot_ms": 13.7, "accept_length": 2.24, "requests": []},
        {"samples": [{"running_requests": 14, "transfer_requests": 2, "accept_length": 2.0}] * 4},
    ],
)
def test_numbers_that_say_nothing_against_the_measurement(numbers: dict[str, object]) -> None:
    assert set(judge_plain(numbers).verdicts) <= {"unknown", "healthy"}
