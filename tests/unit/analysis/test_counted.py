"""Where answers carry no counts of speculation, the server's own before and after a level give acceptance, exactly."""

from collections.abc import Sequence

import pytest

from specbench.analysis import Judgement
from specbench.analysis.judge import judge_run
from specbench.records import Observation
from specbench.suite import Speculation
from tests.unit.analysis.runs import SPECULATION, decode, request, run, steady_requests, suite, trial, variant

LOOKUP = Speculation(method="prompt_lookup", draft_tokens=4)


def reading(name: str, drafts: float, accepted: float, output: float, positions: Sequence[float] = ()) -> Observation:
    counters = {
        'vllm:spec_decode_num_drafts_total{engine="0"}': drafts,
        'vllm:spec_decode_num_draft_tokens_total{engine="0"}': 3 * drafts,
        'vllm:spec_decode_num_accepted_tokens_total{engine="0"}': accepted,
        'vllm:generation_tokens_total{engine="0"}': output,
    }
    for place, value in enumerate(positions):
        counters[f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{place}"}}'] = value
    return Observation(
        at_s=0.0, source="metrics", name=name, value={"workload": "chat", "concurrency": 1, "counters": counters}
    )


def judged(speculation: Speculation, observations: Sequence[Observation]) -> Judgement:
    """One request each, of 1 + 20 tokens in the baseline and 1 + 60 in 20 steps in the variant."""
    asked = suite([variant("plain", engine="vllm"), variant("spec", engine="vllm", speculation=speculation)])
    usage = "usage_per_chunk"
    chunks = [(0.1, 1), *((0.1 + 0.01 * step, 3) for step in range(1, 21))]
    trials = [
        trial("plain", [request(token_source=usage, chunks=[(at, 1) for at, _ in chunks])]),
        trial("spec", [request(token_source=usage, chunks=chunks)], observations),
    ]
    return judge_run(run(asked, trials))


def test_every_step_drafted() -> None:
    before, after = reading("begin", 10, 20, 40, (10, 6, 4)), reading("end", 30, 60, 101, (28, 16, 16))
    found = judged(SPECULATION, [before, after])
    row = next(one for one in found.summaries if one.variant == "spec")
    assert (row.accept_length, row.accept_source, row.verdict) == (3.0, "metrics", "healthy")
    assert row.accept_rate_ratio == pytest.approx(2 / 3)
    assert row.break_even_length is not None
    (profile,) = found.profiles
    assert profile.position_ratio == (18 / 20, 10 / 20, 12 / 20)
    assert not [one for one in found.findings if one.code in ("accept_from_log", "speculation_inactive")]


def test_steps_that_drafted_nothing_are_steps() -> None:
    """61 tokens, one of them the prefill's, 20 accepted: 40 steps, of which 10 drafted."""
    found = judged(LOOKUP, [reading("begin", 0, 0, 0), reading("end", 10, 20, 61)])
    assert found.summaries[1].accept_length == 1 + 20 / 40


@pytest.mark.parametrize(("speculation", "verdict"), [(SPECULATION, "dead_drafter"), (LOOKUP, "healthy")])
def test_nothing_accepted(speculation: Speculation, verdict: str) -> None:
    found = judged(speculation, [reading("begin", 0, 0, 0), reading("end", 60, 0, 61)])
    assert found.summaries[1].accept_length == 1.0
    assert found.summaries[1].verdict == verdict


def test_a_server_that_dropped_its_drafter_does_not_speculate() -> None:
    """llama.cpp's counters are there, and stay at 0, when it serves on without the drafter."""
    found = judged(SPECULATION, [reading("begin", 0, 0, 0), reading("end", 0, 0, 61, (0, 0, 0, 0, 0))])
    assert (found.summaries[1].accept_length, found.summaries[1].verdict) == (None, "speculation_inactive")
    assert found.profiles == ()


def test_positions_that_nothing_was_proposed_for_are_left_out() -> None:
    found = judged(LOOKUP, [reading("begin", 0, 0, 0), reading("end", 20, 5, 61, (4, 1, 0, 0, 0, 0))])
    assert found.profiles[0].position_ratio == (0.2, 0.05, 0.0)


def test_a_server_that_counts_and_has_no_drafts_does_not_speculate() -> None:
    plain = {"vllm:generation_tokens_total": 61.0}
    place = {"workload": "chat", "concurrency": 1, "counters": plain}
    found = judged(
        SPECULATION, [Observation(at_s=0.0, source="metrics", name=name, value=place) for name in ("begin", "end")]
    )
    assert found.summaries[1].verdict == "speculation_inactive"
    assert found.summaries[1].accept_source == "none"


def test_steps_that_drafted_nothing_are_no_disagreement() -> None:
    """61 tokens in 25 steps by the answer; the counters know the 20 that drafted, and their 35 accepted tokens."""
    drafted = request(chunks=[(0.1, 1), *((0.1 + 0.01 * step, 1) for step in range(1, 61))], drafts=(35, 25))
    asked = suite([variant("plain"), variant("spec", speculation=SPECULATION)])
    trials = [
        trial("plain", [request()]),
        trial("spec", [drafted], [reading("begin", 0, 0, 0), reading("end", 20, 35, 61)]),
    ]
    found = judge_run(run(asked, trials))
    assert found.summaries[1].accept_length == 1 + 35 / 25
    assert not [one for one in found.findings if one.code == "sources_disagree" and "counters" in one.message]


def test_requests_come_first_and_a_log_that_says_otherwise_is_told() -> None:
    requests = steady_requests("chat", 1, 0.01, 3, speculating=True)
    asked = suite([variant("plain"), variant("spec", speculation=SPECULATION)])
    lines = [decode(0.1 + 0.01 * step, accept_length=2.0, running_requests=1) for step in range(12)]
    readings = [reading("begin", 0, 0, 0), reading("end", 20, 40, 61)]
    found = judge_run(
        run(asked, [trial("plain", steady_requests("chat", 1, 0.01, 1)), trial("spec", requests, [*readings, *lines])])
    )
    assert (found.summaries[1].accept_length, found.summaries[1].accept_source) == (3.0, "requests")
    (told,) = [one for one in found.findings if one.code == "sources_disagree"]
    assert "by the log" in told.message
    assert told.evidence.startswith("2.000 and 3.000")
