"""Each check: what makes it speak, and that it is silent on a sound run."""

from typing import Any

import msgspec
import pytest

from specbench.analysis import Finding, checks
from specbench.analysis.judge import judge_run
from specbench.records import RequestRecord
from specbench.suite import Drafter, Saturate, Slo, Speculation, Workload
from tests.unit.analysis.runs import SPECULATION, decode, request, run, steady_requests, suite, trial, variant

TWO = suite([variant("plain"), variant("spec", speculation=SPECULATION)])


def findings(spec: list[RequestRecord], plain: list[RequestRecord] | None = None, **fields: Any) -> dict[str, Finding]:
    trials = [trial("plain", plain or [request()]), trial("spec", spec, **fields)]
    return {one.code: one for one in judge_run(run(TWO, trials)).findings}


def sound() -> list[RequestRecord]:
    return steady_requests("chat", 1, 0.06, 3, speculating=True)


def test_a_sound_run_gets_nothing_but_the_note_on_p99() -> None:
    assert set(findings(sound(), steady_requests("chat", 1, 0.05, 1))) == {"few_requests"}


def test_every_check_is_found_by_its_file() -> None:
    assert {"dead_drafter", "few_requests", "simulated"} <= set(checks.names())
    for name in checks.names():
        assert callable(checks.get(name))


def test_accept_length_above_the_ceiling() -> None:
    finding = findings([request(drafts=(50, 10))])["accept_length_range"]
    assert (finding.severity, finding.variant) == ("error", "spec")
    assert "outside 1 to 4" in finding.message
    assert "AL 6.00 (chat at 1)" in finding.evidence


def test_speedup_above_accept_length_suspects_the_baseline() -> None:
    slow = [request(chunks=((1.0, 1), (9.0, 4)))]
    assert "suspect the baseline" in findings(sound(), slow)["speedup_above_length"].message


def test_histogram_that_does_not_add_up() -> None:
    odd = request(drafts=(6, 4), accept_histogram=(1, 1, 1))
    assert "3 in the histogram, 4 verify steps" in findings([odd])["histogram_disagrees"].evidence
    assert "histogram_disagrees" not in findings([request(drafts=(6, 4), accept_histogram=(1, 0, 3))])


def test_tokens_of_chunks_and_usage() -> None:
    assert "5 in chunks, 6 in usage" in findings([request(drafts=(6, 4), output_tokens=6)])["token_counts_disagree"].evidence


def test_no_counts_at_all_and_counts_at_the_end() -> None:
    bare = request(chunk_tokens=(), output_tokens=None, token_source="none")
    assert findings([bare])["no_token_counts"].severity == "warning"
    late = request(chunk_tokens=(), token_source="usage_at_end")
    assert findings([late])["no_token_counts"].severity == "note"


def test_failed_requests_name_the_commonest_error() -> None:
    requests = [request(index, error="reset" if index else "timed out") for index in range(3)]
    finding = findings([*requests, request(3, drafts=(6, 4))])["failed_requests"]
    assert finding.message.startswith("3 of 4 requests failed")
    assert finding.evidence == "2 of them: reset"


@pytest.mark.parametrize(
    ("fields", "speaks"),
    [
        ({"prompt_tokens": 100, "cached_tokens": 90}, True),
        ({"prompt_tokens": 100, "cached_tokens": 20}, False),
        ({"prompt_tokens": 100, "cached_tokens": 90, "turn_index": 1}, False),
        ({"prompt_tokens": 100}, False),
    ],
)
def test_cache_hits_of_prompts_that_were_sent_once(fields: dict[str, Any], speaks: bool) -> None:
    assert ("prompt_cache_hits" in findings([request(drafts=(6, 4), **fields)])) is speaks


def test_a_prompt_sent_again_may_come_from_the_cache() -> None:
    again = [
        request(0, drafts=(6, 4), prompt_id="a", prompt_tokens=100, cached_tokens=0),
        request(1, drafts=(6, 4), prompt_id="a", prompt_tokens=100, cached_tokens=99),
    ]
    assert "prompt_cache_hits" not in findings(again)


def test_enough_requests_for_p99() -> None:
    many = [request(index, drafts=(6, 4)) for index in range(100)]
    assert "few_requests" not in findings(many, [request(index) for index in range(100)])


def test_forced_length_is_noted() -> None:
    asked = suite(TWO.variants, [Workload(name="chat", ignore_eos=True)])
    judgement = judge_run(run(asked, [trial("plain", [request()])]))
    assert "forced_length" in {one.code for one in judgement.findings}


def test_random_prompts_are_a_loud_finding() -> None:
    asked = suite(TWO.variants, [Workload(name="noise", dataset="random")])
    found = {one.code: one for one in judge_run(run(asked, [trial("plain", [request()])])).findings}
    assert "ACCEPTANCE ON RANDOM TEXT MEANS NOTHING: noise" in found["random_prompts"].message
    assert found["random_prompts"].severity == "warning"


def test_acceptance_from_the_log_is_noted() -> None:
    requests = steady_requests("chat", 1, 0.06, 3)
    found = findings(requests, observations=[decode(0.2, accept_length=3.0, running_requests=1)])
    assert found["accept_from_log"].evidence == "variants: spec"


def test_a_simulated_run_says_so() -> None:
    judgement = judge_run(run(TWO, [trial("plain", [request()])], simulated=True))
    assert judgement.simulated
    assert any(one.code == "simulated" and "SIMULATED" in one.message for one in judgement.findings)


def test_a_late_client_is_told_by_its_worst_level() -> None:
    late = [request(index, due_s=float(index), sent_s=index + 0.004) for index in range(30)]
    finding = findings(late)["client_lagged"]
    assert (finding.severity, finding.variant) == ("warning", "spec")
    assert "p99 of sent - due 4.0 ms, limit 2.0 ms" in finding.evidence


def test_a_lag_below_one_percent_of_ttft_is_none() -> None:
    slow = [request(index, due_s=1.0, sent_s=1.004, chunks=((0.5, 1), (0.6, 2))) for index in range(2)]
    assert "client_lagged" not in findings(slow)


def test_one_late_request_is_a_hiccup() -> None:
    assert "client_lagged" not in findings([request(due_s=1.0, sent_s=1.004), request(1)])


def test_a_clock_that_was_set_is_told() -> None:
    assert "during 1 of 2 requests" in findings([request(stepped=True), request(1)])["clock_stepped"].message


def test_errors_come_first() -> None:
    severities = [
        one.severity for one in judge_run(run(TWO, [trial("plain", [request()]), trial("spec", [request()])])).findings
    ]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)


@pytest.mark.parametrize(("last", "words"), [(2, "still grew at 2 streams"), (8, "is highest at 2 streams")])
def test_where_a_sweep_saturates(last: int, words: str) -> None:
    chat = Workload(name="chat", concurrency=(1, 2, last), slo=Slo(ttft_s=0.2), saturate=Saturate(max_streams_count=last))
    asked = suite(TWO.variants, [chat])
    requests = [one for streams in (1, 2) for one in steady_requests("chat", streams, 0.05, 1, start_s=100.0 * streams)]
    found = [one for one in judge_run(run(asked, [trial("plain", requests)])).findings if one.code == "saturated"]
    assert [one.variant for one in found] == ["plain"]
    assert words in found[0].message
    assert bool(found[0].remedy) == (last == 2)


def test_an_arm_of_synthetic_acceptance_gives_a_break_even_and_no_rank() -> None:
    shape = Speculation(method="eagle3", drafter="head", draft_tokens=4, synthetic_length=1.0)
    two = suite([variant("plain"), variant("made", speculation=shape)])
    slow = steady_requests("chat", 1, 0.08, 1)
    made = [msgspec.structs.replace(one, correct_tokens=0, verify_count=20) for one in slow]
    judged = judge_run(run(two, [trial("plain", steady_requests("chat", 1, 0.05, 1)), trial("made", made)]))
    assert judged.verdicts[1].verdicts == ("synthetic",)
    assert "not ranked" in judged.verdicts[1].sentence
    (row,) = [row for row in judged.summaries if row.variant == "made"]
    assert (row.speedup_ratio, row.verdict) == (None, "synthetic")
    assert row.break_even_length == pytest.approx(1.55, abs=0.1)
    assert {"synthetic"} <= {one.code for one in judged.findings}


def test_faked_acceptance_left_on_by_accident_is_an_error() -> None:
    for launched in ({"env": {"SGLANG_SIMULATE_ACC_LEN": "3"}}, {"argv": ("llama-server", "--spec-synth-len", "3")}):
        found = findings(sound(), **launched)["faked_acceptance"]
        assert (found.severity, found.variant) == ("error", "spec")
    assert "faked_acceptance" not in findings(sound(), env={"SGLANG_SIMULATE_ACC_LEN": "-1"})


def test_a_first_wave_that_was_not_warm() -> None:
    def answers(first_step_s: float) -> list[RequestRecord]:
        steps = [first_step_s, *[0.02] * 5]
        return [
            request(n, due_s=10.0 * n, chunks=[(0.1 + step_s * k, 1) for k in range(20)]) for n, step_s in enumerate(steps)
        ]

    assert "4.0 × as long" in findings(answers(0.08))["warmup_in_window"].message
    assert "warmup_in_window" not in findings(answers(0.022))


def test_a_first_prompt_of_which_less_is_accepted_is_no_warm_up() -> None:
    def answer(n: int, token_s: float, correct_tokens: int) -> RequestRecord:
        chunks = [(0.1 + token_s * k, 1) for k in range(20)]
        return request(n, due_s=10.0 * n, chunks=chunks, drafts=(correct_tokens, 10), proposed_tokens=40)

    assert "warmup_in_window" not in findings([answer(0, 0.08, 0), *(answer(n, 0.02, 30) for n in range(1, 6))])
    assert "warmup_in_window" in findings([answer(0, 0.08, 30), *(answer(n, 0.02, 30) for n in range(1, 6))])


def test_answers_that_come_in_one_piece() -> None:
    late = [request(n, chunks=((9.9, 40),), done_s=10.0) for n in range(3)]
    assert "TTFT is the whole answer's time" in findings(late)["stream_buffered"].message
    assert "stream_buffered" not in findings(sound())


def test_drafts_that_stop_after_the_first_answer() -> None:
    counts = [(5, 4), *[(0, 0)] * 4]
    odd = [request(n, due_s=float(n), drafts=pair, proposed_tokens=3 * pair[1]) for n, pair in enumerate(counts)]
    assert "4 later ones have none" in findings(odd)["no_drafts_after_first_request"].message
    assert "no_drafts_after_first_request" not in findings(sound())


def test_a_decode_server_that_waits_for_caches() -> None:
    lines = [decode(0.05, running_requests=2, accept_length=2.0, extra={"transfer_requests": 9}) for _ in range(4)]
    assert "decode_starved_by_transfer" in findings(sound(), observations=lines)
    few = [decode(0.05, running_requests=12, accept_length=2.0, extra={"transfer_requests": 1}) for _ in range(4)]
    assert "decode_starved_by_transfer" not in findings(sound(), observations=few)


def test_an_accept_length_far_from_the_model_card() -> None:
    known = {"head": Drafter(path="/models/lightseekorg/kimi-k2.5-eagle3", method="eagle3")}
    two = suite([variant("plain"), variant("spec", speculation=SPECULATION)], drafters=known)
    low = [request(drafts=(20, 40)) for _ in range(3)]
    trials = [trial("plain", [request()]), trial("spec", low)]
    found = {one.code: one for one in judge_run(run(two, trials)).findings}["published_length"]
    assert (found.severity, "2.69 to 3.34" in found.message) == ("note", True)


def test_arms_of_another_type_of_weights_are_not_comparable() -> None:
    plain = trial("plain", steady_requests("chat", 1, 0.05, 1), resolved={"dtype": "bfloat16"})
    judged = judge_run(run(TWO, [plain, trial("spec", sound(), resolved={"dtype": "float16"})]))
    assert "not_comparable" in judged.verdicts[1].verdicts
    assert judged.summaries[1].speedup_ratio is None


def test_short_levels_are_held_together_against_the_log() -> None:
    def level(concurrency: int, begin_s: float) -> list[RequestRecord]:
        return [request(concurrency, concurrency=concurrency, due_s=begin_s, chunks=((0.1, 1), (4.0, 2)), drafts=(100, 100))]

    lines = [decode(begin_s + 0.5 * n, running_requests=1, accept_length=2.4) for begin_s in (0.0, 50.0) for n in range(6)]
    both = [Workload(name="chat", concurrency=(1, 4))]
    two = suite([variant("plain"), variant("spec", speculation=SPECULATION)], both)
    judged = judge_run(run(two, [trial("spec", level(1, 0.0) + level(4, 50.0), lines)]))
    (found,) = [one for one in judged.findings if one.code == "sources_disagree"]
    assert (found.severity, found.evidence) == ("warning", "2.400 and 2.000 (all levels)")
