"""Hand-made runs to judgements."""

import msgspec
import pytest

from specbench.analysis import Judgement, Summary
from specbench.analysis.judge import judge_run
from specbench.errors import StoreError
from specbench.suite import Drafter, Speculation, Workload
from tests.unit.analysis import runs
from tests.unit.analysis.runs import SPECULATION, decode, request, steady_requests, suite, trial, variant, whole_run

TWO = suite([variant("plain"), variant("spec", speculation=SPECULATION)])


def only(judgement: Judgement, name: str) -> Summary:
    (row,) = [row for row in judgement.summaries if row.variant == name]
    return row


def codes(judgement: Judgement, name: str) -> tuple[str, ...]:
    return next(one.verdicts for one in judgement.verdicts if one.variant == name)


def sentence(judgement: Judgement, name: str) -> str:
    return next(one.sentence for one in judgement.verdicts if one.variant == name)


def found(judgement: Judgement, code: str) -> list[str | None]:
    return [one.variant for one in judgement.findings if one.code == code]


def two(plain: tuple[float, int], spec: tuple[float, int]) -> Judgement:
    return judge_run(whole_run({"plain": {("chat", 1): plain}, "spec": {("chat", 1): spec}}, TWO))


def test_a_drafter_that_pays() -> None:
    judgement = two((0.05, 1), (0.06, 3))
    row = only(judgement, "spec")
    assert row.speedup_ratio == pytest.approx((61 / 1.3) / (21 / 1.1))
    assert row.accept_length == 3.0
    assert row.accept_rate_ratio == pytest.approx(2 / 3)
    ratio = (61 / 1.3) / (21 / 1.1)
    assert row.break_even_length == pytest.approx(3.0 / ratio)
    assert row.efficiency_ratio == pytest.approx(ratio / 3.0)
    assert (row.verdict, row.proposed_tokens, row.longest_accept_tokens) == ("healthy", 3, 4)
    assert only(judgement, "plain").verdict == "baseline"
    assert sentence(judgement, "spec") == "gains 2.46× on chat at 1 stream, accepting 3.00 tokens a step"


def test_a_drafter_that_is_accepted_and_still_loses() -> None:
    judgement = two((0.05, 1), (0.2, 2))
    assert only(judgement, "spec").verdict == "slower_than_baseline"
    assert sentence(judgement, "spec") == (
        "accepts 2.00 tokens a step and still loses: 0.52× on chat at 1 stream; would need 3.82 instead of 2.00"
    )


def test_what_the_drafter_does_is_told_apart_from_what_the_graphs_do() -> None:
    eager = [variant("plain-eager", cuda_graph=False), variant("spec-eager", speculation=SPECULATION, cuda_graph=False)]
    three = suite([variant("plain"), *eager])
    steps = {"plain": (0.05, 1), "plain-eager": (0.1, 1), "spec-eager": (0.2, 3)}
    judgement = judge_run(whole_run({name: {("chat", 1): pair} for name, pair in steps.items()}, three))
    assert sentence(judgement, "spec-eager").endswith(
        "; beside plain-eager, which lacks the drafter alone: 1.49× on chat at 1 stream"
    )
    assert "beside" not in sentence(judgement, "plain-eager") + sentence(two((0.05, 1), (0.2, 2)), "spec")


def test_a_drafter_that_could_not_win_however_good() -> None:
    judgement = two((0.05, 1), (0.5, 2))
    assert sentence(judgement, "spec").endswith("instead of 2.00 (its draft length allows at most 4)")


def test_a_dead_drafter() -> None:
    judgement = two((0.05, 1), (0.07, 1))
    assert only(judgement, "spec").verdict == "dead_drafter"
    assert codes(judgement, "spec") == ("dead_drafter", "slower_than_baseline")
    assert sentence(judgement, "spec").startswith("accepts no draft tokens (AL 1.00): 0.73×")


@pytest.mark.parametrize("drafter", [Drafter(path="org/head", method="eagle3"), Drafter(path="org/kimi-EAGLE-3-head")])
def test_the_wrong_word_for_an_eagle3_drafter(drafter: Drafter) -> None:
    wrong = Speculation(method="eagle", drafter="head", draft_tokens=4)
    asked = suite([variant("plain"), variant("spec", speculation=wrong)], drafters={"head": drafter})
    judgement = judge_run(whole_run({"plain": {("chat", 1): (0.05, 1)}, "spec": {("chat", 1): (0.07, 1)}}, asked))
    (finding,) = [one for one in judgement.findings if one.code == "dead_drafter"]
    assert "--speculative-algorithm EAGLE3" in finding.remedy
    assert "7168" in finding.message


def test_an_eagle_drafter_that_is_dead_gets_no_such_advice() -> None:
    asked = suite(
        [variant("plain"), variant("spec", speculation=Speculation(method="eagle", drafter="head", draft_tokens=4))],
        drafters={"head": Drafter(path="org/head", method="eagle")},
    )
    judgement = judge_run(whole_run({"plain": {("chat", 1): (0.05, 1)}, "spec": {("chat", 1): (0.07, 1)}}, asked))
    (finding,) = [one for one in judgement.findings if one.code == "dead_drafter"]
    assert "EAGLE3" not in finding.remedy


def test_lookup_that_finds_nothing_is_no_dead_drafter() -> None:
    lookup = Speculation(method="prompt_lookup", draft_tokens=4)
    asked = suite([variant("plain"), variant("spec", speculation=lookup)])
    judgement = judge_run(whole_run({"plain": {("chat", 1): (0.05, 1)}, "spec": {("chat", 1): (0.07, 1)}}, asked))
    assert only(judgement, "spec").verdict == "slower_than_baseline"
    assert sentence(judgement, "spec").startswith("is hardly accepted at all (AL 1.00) and loses")


def test_one_level_with_acceptance_is_enough_to_be_alive() -> None:
    asked = suite(TWO.variants, [Workload(name="chat"), Workload(name="copy")])
    speeds = {
        "plain": {("chat", 1): (0.05, 1), ("copy", 1): (0.05, 1)},
        "spec": {("chat", 1): (0.07, 1), ("copy", 1): (0.07, 3)},
    }
    judgement = judge_run(whole_run(speeds, asked))
    assert codes(judgement, "spec") == ("slower_than_baseline",)
    assert sentence(judgement, "spec") == (
        "gains 2.13× on copy at 1 stream; loses on chat at 1 stream (0.73×: hardly accepted, AL 1.00, would need 1.36)"
    )
    (pooled,) = [row for row in judgement.overview if row.variant == "spec"]
    assert pooled.workload == "all"
    assert pooled.accept_length == 2.0
    assert pooled.speedup_ratio == pytest.approx((82 / 3.0) / (42 / 2.2))


def capped(plain_limit: int, spec_limit: int) -> Judgement:
    asked = suite(TWO.variants, [Workload(name="chat", concurrency=(4,))])
    trials = [
        trial("plain", steady_requests("chat", 4, 0.05, 1), resolved={"max_running_requests": plain_limit}),
        trial("spec", steady_requests("chat", 4, 0.06, 3, speculating=True), resolved={"max_running_requests": spec_limit}),
    ]
    return judge_run(runs.run(asked, trials))


def test_arms_that_held_different_loads_get_no_speedup() -> None:
    judgement = capped(plain_limit=4096, spec_limit=2)
    row = only(judgement, "spec")
    assert (row.verdict, row.speedup_ratio, row.break_even_length) == ("not_comparable", None, None)
    assert codes(judgement, "spec") == ("not_comparable", "concurrency_capped")
    assert found(judgement, "not_comparable") == ["spec"]
    assert found(judgement, "concurrency_capped") == ["spec"]
    assert sentence(judgement, "spec") == (
        "not comparable with the baseline: of 4 offered requests 'spec' runs 2 at once and 'plain' 4"
    )


def test_the_same_cap_on_both_arms_is_comparable_but_said() -> None:
    judgement = capped(plain_limit=2, spec_limit=2)
    assert only(judgement, "spec").speedup_ratio is not None
    assert found(judgement, "concurrency_capped") == ["plain", "spec"]


def test_limits_above_the_load_do_not_matter() -> None:
    judgement = capped(plain_limit=4096, spec_limit=48)
    assert only(judgement, "spec").verdict == "healthy"


def test_many_failed_requests_make_arms_incomparable() -> None:
    bad = [request(1, error="timed out"), request(2, drafts=(20, 10))]
    judgement = judge_run(runs.run(TWO, [trial("plain", [request()]), trial("spec", bad)]))
    assert only(judgement, "spec").speedup_ratio is None
    assert "1 of 2 requests of 'spec' failed" in sentence(judgement, "spec")
    assert found(judgement, "failed_requests") == ["spec"]


@pytest.mark.parametrize(
    ("wanted", "graphs", "verdict"),
    [
        (None, (False, False), "graphs_off"),
        (True, (False, False), "graphs_off"),
        (False, (False, False), "healthy"),
        (None, (True, False), "mixed_graph_regimes"),
        (True, (True, True), "healthy"),
    ],
)
def test_graphs(wanted: bool | None, graphs: tuple[bool, ...], verdict: str) -> None:
    asked = suite([variant("plain"), variant("spec", speculation=SPECULATION, cuda_graph=wanted)])
    lines = [decode(0.2, cuda_graph=one, running_requests=1, accept_length=3.0) for one in graphs]
    trials = [
        trial("plain", steady_requests("chat", 1, 0.05, 1)),
        trial("spec", steady_requests("chat", 1, 0.06, 3, speculating=True), lines),
    ]
    assert only(judge_run(runs.run(asked, trials)), "spec").verdict == verdict


def test_lines_outside_the_level_do_not_count() -> None:
    trials = [
        trial("plain", steady_requests("chat", 1, 0.05, 1)),
        trial("spec", steady_requests("chat", 1, 0.06, 3), [decode(50.0, accept_length=3.0, cuda_graph=False)]),
    ]
    row = only(judge_run(runs.run(TWO, trials)), "spec")
    assert (row.accept_length, row.graph_ratio) == (None, None)


def test_speculation_that_shows_nothing_is_inactive() -> None:
    judgement = judge_run(runs.run(TWO, [trial("plain", [request()]), trial("spec", [request()])]))
    assert only(judgement, "spec").verdict == "speculation_inactive"
    assert found(judgement, "speculation_inactive") == ["spec"]


def test_acceptance_that_nobody_would_tell_is_unknown_not_inactive() -> None:
    silent = request(token_source="usage_per_chunk")
    judgement = judge_run(runs.run(TWO, [trial("plain", [silent]), trial("spec", [silent])]))
    assert only(judgement, "spec").verdict == "healthy"
    (finding,) = [one for one in judgement.findings if one.code == "speculation_inactive"]
    assert finding.severity == "note"


def test_warmup_is_never_counted() -> None:
    cold = request(9, chunks=((30.0, 1), (60.0, 1)), drafts=(0, 100), warmup=True)
    judgement = judge_run(runs.run(TWO, [trial("plain", [request()]), trial("spec", [cold, request(drafts=(20, 10))])]))
    row = only(judgement, "spec")
    assert (row.request_count, row.accept_length) == (1, 3.0)


def test_a_failed_launch_names_its_cause() -> None:
    judgement = judge_run(runs.run(TWO, [trial("plain", [request()]), runs.failed("spec", "CUDA out of memory.")]))
    row = only(judgement, "spec")
    assert (row.verdict, row.request_count, row.output_tps) == ("failed", 0, None)
    assert sentence(judgement, "spec") == "failed: CUDA out of memory"
    assert found(judgement, "launch_failed") == ["spec"]


def test_a_failed_baseline_leaves_the_others_without_speedup() -> None:
    judgement = judge_run(
        runs.run(TWO, [runs.failed("plain", "port 30000 is in use"), trial("spec", [request(drafts=(6, 4))])])
    )
    assert only(judgement, "spec").speedup_ratio is None
    assert only(judgement, "spec").verdict == "unknown"
    assert sentence(judgement, "spec").startswith("not comparable with the baseline")


def test_what_was_never_started_is_unknown() -> None:
    planned = tuple(trial(name).record.trial for name in ("plain", "spec"))
    judgement = judge_run(runs.run(TWO, [trial("plain", [request()])], complete=False, planned=planned))
    assert only(judgement, "spec").verdict == "unknown"
    assert sentence(judgement, "spec") == "not measured: the run ended before it"
    assert judgement.notes[0].startswith("The run did not come to its end")


def test_launches_are_pooled_and_counted() -> None:
    trials = [
        trial("plain", [request()]),
        trial("plain", [request()], launch_index=1),
        trial("spec", [request(drafts=(6, 4))]),
    ]
    assert only(judge_run(runs.run(TWO, trials)), "plain").launch_count == 2


def test_the_servers_word_on_draft_tokens_counts() -> None:
    resolved = {"draft_tokens": 8, "steps": 7, "effective_max_running_requests_per_rank": 12}
    trials = [trial("plain", [request()]), trial("spec", [request(drafts=(20, 10))], resolved=resolved)]
    row = only(judge_run(runs.run(TWO, trials)), "spec")
    assert (row.proposed_tokens, row.longest_accept_tokens) == (7, 8)
    assert row.accept_rate_ratio == pytest.approx(2 / 7)


def test_a_run_whose_suite_cant_be_read() -> None:
    stored = whole_run({"plain": {("chat", 1): (0.05, 1)}}, TWO)
    broken = msgspec.structs.replace(stored, run=msgspec.structs.replace(stored.run, suite={"name": "made"}))
    with pytest.raises(StoreError, match=r"suite in its run\.json"):
        judge_run(broken)


def test_a_level_recorded_in_part_gives_no_figure() -> None:
    whole = trial("spec", steady_requests("chat", 4, 0.02, 3, speculating=True))
    cut = msgspec.structs.replace(whole, requests=whole.requests[:3])
    unlisted = msgspec.structs.replace(whole, record=msgspec.structs.replace(whole.record, levels=()))
    workloads = (Workload(name="chat", concurrency=(4,)),)
    for one, seen in ((cut, "3 of 4 requests"), (unlisted, "4 requests")):
        base = trial("plain", steady_requests("chat", 4, 0.02, 1))
        judgement = judge_run(runs.run(suite(TWO.variants, workloads), [base, one]))
        assert only(judgement, "spec").output_tps is None
        assert only(judgement, "spec").speedup_ratio is None
        assert only(judgement, "plain").output_tps is not None
        evidence = [finding.evidence for finding in judgement.findings if finding.code == "cut_off_level"]
        assert evidence == [f"launch 0, chat at 4: {seen}"]


def test_a_suite_without_its_baseline_is_no_result() -> None:
    stored = runs.run(TWO, [trial("plain", [request()])])
    broken = msgspec.structs.replace(
        stored, run=msgspec.structs.replace(stored.run, suite={**stored.run.suite, "baseline": "x"})
    )
    with pytest.raises(StoreError, match="no variant 'x', its baseline"):
        judge_run(broken)


def test_time_lost_on_failed_requests_is_in_no_rate() -> None:
    good = steady_requests("chat", 1, 0.02, 1)
    late = request(5, due_s=100.0, chunks=(), error="reset")
    judgement = judge_run(runs.run(TWO, [trial("plain", [*good, late])]))
    row = only(judgement, "plain")
    assert row.failed_count == 1
    assert row.output_tps == pytest.approx(21 / 0.5, rel=0.01)
