"""Acceptance taken apart, on requests whose steps are known; and the checks that look at the parts."""

from typing import Any

import pytest
from msgspec import structs

from specbench.analysis.cells import Arm, Cell, Load
from specbench.analysis.checks.degenerate_text import loops
from specbench.analysis.checks.draft_depth_too_large import best_depth
from specbench.analysis.judge import judge_run
from specbench.analysis.profile import depths, positions, profile_of, quarters
from specbench.records import Observation, RequestRecord
from specbench.suite import Workload
from tests.unit.analysis.runs import SPECULATION, decode, request, run, suite, trial, variant
from tests.unit.analysis.test_checks import TWO, findings


def steps(index: int, tokens: list[int], **fields: Any) -> RequestRecord:
    """A first chunk of one token, then a chunk a step."""
    chunks = [(0.1, 1), *((0.1 + 0.1 * (place + 1), count) for place, count in enumerate(tokens))]
    return request(index, due_s=float(index), chunks=chunks, drafts=(sum(tokens) - len(tokens), len(tokens)), **fields)


def test_positions_come_from_the_histograms() -> None:
    both = [request(accept_histogram=(1, 1, 2)), request(1, accept_histogram=(0, 0, 0, 4))]
    assert positions(both) == pytest.approx((7 / 8, 6 / 8, 4 / 8))
    assert positions([request()]) == ()


def test_categories_and_quarters_pool_counts() -> None:
    requests = [steps(index, [4] * 10 if index < 4 else [2] * 10, category="ab"[index % 2]) for index in range(8)]
    arm = Arm(
        variant=variant("v", speculation=SPECULATION),
        cells={("chat", 1): Cell(workload="chat", concurrency=1, loads=(Load(requests=tuple(requests)),))},
    )
    profile = profile_of(arm)
    assert [(one.name, one.accept_length, one.verify_count) for one in profile.categories] == [
        ("a", 3.0, 40),
        ("b", 3.0, 40),
    ]
    assert [one.accept_length for one in profile.quarters] == [4.0, 4.0, 2.0, 2.0]
    assert list(quarters(requests[:7])) == []
    apart = [structs.replace(one, category="early" if one.due_s < 4 else "late") for one in requests]
    assert list(quarters(apart)) == []


def test_depths_are_told_only_where_chunks_are_steps() -> None:
    deep = steps(0, [4] * 100 + [1] * 100)
    parts = {one.name: (one.accept_length, one.verify_count) for one in depths([deep])}
    assert parts == {"0 to 128": (4.0, 32), "128 to 512": (pytest.approx((68 * 4 + 100) / 168), 168)}
    assert list(depths([structs.replace(deep, verify_count=20)])) == []


def test_acceptance_that_falls_with_depth_is_found() -> None:
    deep = [steps(index, [4] * 60 + [1] * 200) for index in range(2)]
    found = findings(deep)["acceptance_declining"]
    assert "the deeper an answer gets" in found.message
    assert "0 to 128: 4.00" in found.evidence
    assert "acceptance_declining" not in findings([steps(index, [3] * 200) for index in range(8)])


def test_acceptance_that_falls_over_the_run_is_found() -> None:
    falling = [steps(index, [4 - index // 3] * 30) for index in range(12)]
    found = findings(falling)["acceptance_declining"]
    assert "the longer the server runs" in found.message
    assert found.evidence == "1/4: 4.00; 2/4: 3.00; 3/4: 2.00; 4/4: 1.00"


def test_acceptance_at_its_ceiling_is_noted() -> None:
    assert "AL 4.00 of at most 4" in findings([steps(0, [4] * 20)])["acceptance_at_ceiling"].message
    assert "acceptance_at_ceiling" not in findings([steps(0, [3] * 20)])


def test_a_log_that_disagrees_with_the_requests_is_told_with_a_reason() -> None:
    requests = [steps(0, [3] * 40)]
    lines = [decode(0.1 * place, accept_length=2.0, running_requests=1) for place in range(1, 15)]
    found = findings(requests, observations=lines)["sources_disagree"]
    assert "by the log and by the requests' own counters differ: 14 log lines show a part" in found.message
    assert found.evidence == "2.000 and 3.000 (chat at 1)"
    ranked = [decode(0.1 * place, accept_length=2.0, running_requests=1, rank={"dp": place % 2}) for place in range(1, 29)]
    told = findings(requests, observations=ranked).get("sources_disagree")
    assert told is None or "data-parallel" in told.message
    good = [decode(0.1 * place, accept_length=3.0, running_requests=1) for place in range(1, 15)]
    assert "sources_disagree" not in findings(requests, observations=good)


def test_chunks_that_disagree_are_told() -> None:
    odd = [structs.replace(steps(index, [3] * 150), correct_tokens=150) for index in range(2)]
    assert findings(odd)["sources_disagree"].evidence == "3.000 and 2.000 (chat at 1)"


def test_what_the_servers_resolved_differently_is_listed_and_the_speculation_is_not() -> None:
    base = trial("plain", [request()], resolved={"max_total_tokens": 100, "attention_backend": "fa3", "version": "1"})
    spec = trial(
        "spec",
        [steps(0, [3] * 5)],
        resolved={
            "max_total_tokens": 80,
            "attention_backend": "fa3",
            "version": "1",
            "draft_tokens": 4,
            "algorithm": "EAGLE3",
        },
    )
    found = {one.code: one for one in judge_run(run(TWO, [base, spec])).findings}["arms_differ"]
    assert found.evidence == "max_total_tokens 80 (baseline 100)"
    assert "arms_differ" not in findings([steps(0, [3] * 5)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I can help. " * 20, True),
        ("the the " * 30, True),
        ("A plain answer that ends as answers do, with a sentence of its own and no circles in it whatever it says.", False),
        ("0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25", False),
        ("", False),
        ("." * 70, True),
        ("." * 30, False),
    ],
)
def test_a_loop_is_seen(text: str, expected: bool) -> None:
    assert loops(text) is expected


def test_looping_answers_are_a_finding_with_both_acceptances() -> None:
    loop = [steps(index, [4] * 10, output_text="so it goes " * 20) for index in range(2)]
    good = [steps(index + 2, [2] * 10, output_text="A sentence.") for index in range(6)]
    found = findings([*loop, *good])["degenerate_text"]
    assert "2 of 8 answers end in a loop" in found.message
    assert "AL with a loop 4.00; AL without a loop 2.00" in found.evidence


def test_prompts_that_are_asked_again_are_noted() -> None:
    again = [structs.replace(steps(index, [3] * 5), prompt_id=f"p{index % 2}") for index in range(4)]
    assert findings(again)["prompts_repeat"].evidence == "chat: 2 prompts for 4 requests"


def test_counters_and_gauge_of_metrics_are_held_against_the_requests() -> None:
    def read(drafts: float, accepted: float, gauge: float) -> list[Observation]:
        counters = {"vllm:spec_decode_num_drafts_total": drafts, "vllm:spec_decode_num_accepted_tokens_total": accepted}
        place = {"workload": "chat", "concurrency": 1}
        return [
            Observation(
                at_s=0.0, source="metrics", name="begin", value=place | {"counters": {"sglang:spec_accept_length": 1.5}}
            ),
            Observation(
                at_s=9.0,
                source="metrics",
                name="end",
                value=place | {"counters": counters | {"sglang:spec_accept_length": gauge}},
            ),
        ]

    requests = [steps(0, [3] * 40)]
    assert "sources_disagree" not in findings(requests, observations=read(40, 80, 2.9))
    counted = findings(requests, observations=read(40, 40, 3.0))["sources_disagree"]
    assert "by the counters of /metrics and by" in counted.message
    assert counted.evidence == "2.000 and 3.000 (chat at 1)"
    assert (
        "by the gauge of /metrics and by" in findings(requests, observations=read(40, 80, 1.5))["sources_disagree"].message
    )


def test_which_depth_would_have_been_best() -> None:
    assert best_depth((0.8, 0.1, 0.05), 0.010, 0.022) == pytest.approx((1, (1.8 / 0.014) / (1.95 / 0.022)))
    assert best_depth((0.9, 0.9, 0.9), 0.010, 0.011) == pytest.approx((3, 1.0))
    assert best_depth((0.9, 0.9), 0.010, 0.009) == pytest.approx((2, 1.0))


def test_a_draft_that_goes_too_deep_is_a_note_with_an_estimate() -> None:
    base = [request(0, chunks=[(0.1 + 0.05 * place, 1) for place in range(20)])]
    deep = request(
        0, chunks=[(0.1 + 0.11 * place, 2) for place in range(20)], drafts=(210, 200), accept_histogram=(44, 110, 24, 22)
    )
    found = findings([deep], base)["draft_depth_too_large"]
    assert "K = 3: K = 1 would be about" in found.evidence
    assert found.remedy == "Measure `draft_tokens: 2` beside it."


def test_a_level_of_few_steps_leaves_the_depth_to_the_next() -> None:
    slow, plain = ([(0.1 + step_s * place, count) for place in range(20)] for step_s, count in ((0.11, 2), (0.05, 1)))
    deep = [
        request(0, chunks=slow, drafts=(21, 20), accept_histogram=(4, 11, 3, 2)),
        request(1, concurrency=8, chunks=slow, drafts=(210, 200), accept_histogram=(44, 110, 24, 22)),
    ]
    base = [request(index, concurrency=level, chunks=plain) for index, level in enumerate((1, 8))]
    both = suite(TWO.variants, [Workload(name="chat", concurrency=(1, 8))])
    judged = judge_run(run(both, [trial("plain", base), trial("spec", deep)]))
    found = {one.code: one for one in judged.findings}
    assert "(chat at 8)" in found["draft_depth_too_large"].evidence
    assert "draft_depth_too_large" not in findings(deep[:1], base[:1])
    capped = judge_run(run(both, [trial("plain", base), trial("spec", deep, resolved={"max_running_requests": 4})]))
    assert {"not_comparable"} == {one.code for one in capped.findings} & {"not_comparable", "draft_depth_too_large"}
