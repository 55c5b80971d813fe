"""What must never become a figure: records that can't be true, launches that failed, variants that nobody asked for."""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from specbench.analysis import Judgement, Summary
from specbench.analysis.judge import judge_run
from specbench.records import Failure
from specbench.store import StoredTrial
from specbench.suite import Workload
from specbench.timing import is_impossible
from tests.unit.analysis import runs
from tests.unit.analysis.runs import request, trial, variant

TWO: Final = runs.suite([variant("plain"), variant("spec", speculation=runs.SPECULATION)])
DIED: Final = Failure(kind="died_under_load", cause="the GPU is gone", exit_code=1)
STOPPED: Final = Failure(kind="interrupted", cause="stopped in the middle by the user or the system")
DAMAGES: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "negative TTFT": ({"chunk_s": (-0.4, 0.2, 0.3)}, "its first chunk came 0.400 s before it was due"),
    "done before due": ({"done_s": -2.0}, "done 2.000 s before it was due"),
    "due before the launch": ({"due_s": -7.0}, "due 7.000 s before its launch began"),
    "chunks that go back": ({"chunk_s": (0.2, 0.1, 0.3)}, "its chunks go back in time"),
    "a chunk after the end": ({"chunk_s": (0.1, 0.2, 9.3)}, "its last chunk came 9.000 s after its end"),
    "fewer than no tokens": ({"output_tokens": -5}, "it counts fewer than no tokens or steps"),
}


def rows(judgement: Judgement, name: str) -> list[Summary]:
    return [row for row in judgement.summaries if row.variant == name]


def sentence(judgement: Judgement, name: str) -> str:
    return next(one.sentence for one in judgement.verdicts if one.variant == name)


def judged(*trials: StoredTrial, **fields: Any) -> Judgement:
    return judge_run(runs.run(TWO, trials, **fields))


@pytest.mark.parametrize("name", DAMAGES)
def test_a_record_that_can_not_be_true_gives_no_number_and_is_told(name: str) -> None:
    damage, told = DAMAGES[name]
    healthy = request(1, due_s=1.0, drafts=(2, 2))
    damaged = replace(request(0, drafts=(0, 900)), **damage)
    assert is_impossible(damaged)
    assert not is_impossible(healthy)
    judgement = judged(trial("plain", [request()]), trial("spec", [damaged, healthy]))
    (row,) = rows(judgement, "spec")
    assert (row.output_tps, row.steady_tps, row.goodput_rps, row.speedup_ratio) == (None,) * 4
    assert row.accept_length == 2.0
    assert row.ttft is not None
    assert (row.request_count, row.ttft.count, round(row.ttft.p99_s, 6)) == (1, 1, 0.1)
    (finding,) = [one for one in judgement.findings if one.code == "impossible_records"]
    assert finding.variant == "spec"
    assert finding.message.startswith("The records of 1 of 2 requests can't be true")
    assert finding.evidence == f"launch 0, request 0: {told}"


def test_a_clock_that_was_set_is_told_as_that() -> None:
    assert not is_impossible(request(chunk_s=(-3600.0, 0.2, 0.3), stepped=True))
    assert not is_impossible(request(chunks=[], error="refused"))


def test_a_failed_launch_gives_no_figure() -> None:
    """Also not of the levels that it had measured whole; these are named."""
    judgement = judged(trial("plain", [request()]), trial("spec", [request(drafts=(2, 2))], failure=DIED))
    (row,) = rows(judgement, "spec")
    assert (row.verdict, row.output_tps, row.accept_length, row.ttft, row.request_count) == ("failed", None, None, None, 0)
    assert sentence(judgement, "spec") == "failed: the GPU is gone"
    (finding,) = [one for one in judgement.findings if one.code == "launch_failed"]
    assert finding.message == "1 of 1 launch failed: the GPU is gone"
    assert finding.evidence == "died_under_load, exit code 1; measured before, and in no table: chat at 1"


def test_whole_launches_count_without_the_failed_one() -> None:
    slow = [request(chunks=((1.0, 1), (2.0, 2)), drafts=(2, 2))]
    spec = [trial("spec", [request(drafts=(2, 2))]), trial("spec", slow, launch_index=1, failure=DIED)]
    (row,) = rows(judged(trial("plain", [request()]), *spec), "spec")
    assert (row.launch_count, row.speedup_ratio) == (1, 1.0)
    assert row.output_tps == pytest.approx(5 / 0.3)


@pytest.mark.parametrize("failure", [STOPPED, None], ids=["stopped", "cut off"])
def test_what_was_measured_before_a_stop_is_called_partial(failure: Failure | None) -> None:
    stopped = trial("spec", [request(drafts=(2, 2))], failure=failure)
    cut = replace(stopped, record=replace(stopped.record, complete=False))
    judgement = judged(trial("plain", [request()]), cut, complete=False)
    (row,) = rows(judgement, "spec")
    assert (row.verdict, row.speedup_ratio, row.break_even_length) == ("partial", None, None)
    assert row.output_tps is not None
    assert "partial and compared with nothing" in sentence(judgement, "spec")
    told = [one for one in judgement.findings if one.code == "launch_failed"]
    assert [(one.severity, one.message) for one in told] == (
        [("warning", f"1 of 1 launch was {STOPPED.cause}")] if failure else []
    )
    assert all(one.remedy == "Go on with it: specbench run --resume results/made-20261129-153647" for one in told)
    assert judgement.notes == ("The run did not come to its end: 1 of 2 launches is whole.",)
    whole = trial("spec", [request(drafts=(2, 2))], launch_index=1)
    (row,) = rows(judged(trial("plain", [request()]), cut, whole), "spec")
    assert (row.verdict, row.launch_count) != ("partial", 2), "a whole launch stands for itself"


def test_nothing_is_compared_with_a_partial_baseline() -> None:
    stopped = trial("plain", [request()], failure=STOPPED)
    (row,) = rows(judged(stopped, trial("spec", [request(drafts=(2, 2))])), "spec")
    assert (row.verdict, row.speedup_ratio) == ("unknown", None)


def test_a_variant_that_nobody_asked_for_is_not_a_missing_one() -> None:
    judgement = judged(trial("spec", [request(drafts=(2, 2))]))
    (row,) = rows(judgement, "plain")
    assert row.verdict == "not_asked_for"
    assert sentence(judgement, "plain") == "not asked for: the run was begun with other variants only"
    assert sentence(judgement, "spec") == "not comparable with the baseline: it was not asked for in this run"


def test_a_baseline_that_failed_is_named_as_the_reason() -> None:
    judgement = judged(trial("plain", failure=DIED), trial("spec", [request(drafts=(2, 2))]))
    assert sentence(judgement, "spec") == "not comparable with the baseline: it failed"


def remedy(judgement: Judgement, code: str) -> str:
    return next(one.remedy for one in judgement.findings if one.code == code)


def test_what_to_do_against_arms_that_differ_is_said_in_words_to_type() -> None:
    again = "Then measure both again: specbench run suites/made.yaml --variant plain spec"
    eight = [request(place, concurrency=8, drafts=(2, 2)) for place in range(8)]
    plain = trial("plain", [replace(one, verify_count=None, correct_tokens=None) for one in eight])
    asked = runs.suite(TWO.variants, [Workload(name="chat", concurrency=(8,))])

    def told(spec: StoredTrial) -> str:
        return remedy(judge_run(runs.run(asked, [plain, spec])), "not_comparable")

    capped = told(trial("spec", eight, resolved={"max_running_requests": 4}))
    assert capped.startswith("Write `args: [--max-running-requests, 8]` under the suite's `server:`")
    assert capped.endswith(again)
    plain = replace(plain, record=replace(plain.record, resolved={"dtype": "bfloat16"}))
    assert told(trial("spec", eight, resolved={"dtype": "float16"})).startswith("State `--dtype` once for all variants")
    failing = [replace(one, error="HTTP 500") for one in eight]
    assert told(trial("spec", [*failing[:4], *eight[4:]])).startswith(
        "Remove why requests of 'spec' fail, mostly: HTTP 500."
    )


def test_what_to_do_about_a_level_in_part_depends_on_what_happened() -> None:
    spec = trial("spec", [request(0, drafts=(2, 2)), request(1, due_s=1.0, drafts=(2, 2))])
    short = replace(spec, requests=spec.requests[:1])
    resume = "specbench run --resume results/made-20261129-153647"

    def told(one: StoredTrial) -> str:
        return remedy(judged(trial("plain", [request()]), one), "cut_off_level")

    assert told(replace(short, missing_count=1)) == (
        f"spec/requests.jsonl lost lines: put it back from a copy, or measure that launch again: {resume}"
    )
    cut = replace(short, record=replace(short.record, complete=False))
    assert told(cut) == f"The run was stopped in the middle; measure what is lacking: {resume}"
    assert told(short).endswith("measure it anew: specbench run suites/made.yaml --variant plain spec")


def test_a_client_that_stood_still_is_told() -> None:
    """Every request is in time, for it is due when the client gets to it; the server waited meanwhile."""

    def told(second_s: float, concurrency: int = 1) -> list[str]:
        pair = [request(place, due_s=at, concurrency=concurrency, drafts=(2, 2)) for place, at in enumerate((0.0, second_s))]
        asked = runs.suite(TWO.variants, [Workload(name="chat", concurrency=(concurrency,))])
        plain = trial("plain", [request(concurrency=concurrency)])
        findings = judge_run(runs.run(asked, [plain, trial("spec", pair)])).findings
        return [one.evidence for one in findings if one.code == "client_paused"]

    assert told(0.301) == []
    assert told(8.3) == ["chat at 1: 8.0 s of 8.6 s"]
    assert told(0.1, concurrency=2) == [], "one is in flight"
