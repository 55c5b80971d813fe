"""Faults beyond one launch: every answer fails, an answer is long, a full disk gets room again. The next variant runs."""

from typing import Final

import pytest

from specbench.analysis.judge import judge_run
from specbench.store import StoredRun
from tests.e2e.bed import Bed, finish
from tests.e2e.test_faults import MANY, suite, trial_of

ALL_FAIL: Final = {
    "reset": ("reset:1", "Connection reset by peer"),
    "http_500": ("http_500:1", "HTTP 500: SIMULATED: internal error"),
    "garbage": ("garbage:1", "an event that can't be read"),
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    bed = Bed(tmp_path_factory.mktemp("failing"))
    path = suite(bed, {name: [word] for name, (word, _) in ALL_FAIL.items()}, *ALL_FAIL, "last")
    done = bed.run(str(path), "--rehearse", "--quiet")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return bed.stored()


@pytest.mark.parametrize("name", ALL_FAIL)
def test_a_server_that_answers_nothing_well_ends_its_launch(failing: StoredRun, name: str) -> None:
    failure = trial_of(failing, name).record.failure
    assert failure is not None
    assert failure.kind == "no_answers"
    assert failure.cause.startswith("no request of ")
    assert ALL_FAIL[name][1] in failure.cause
    errors = [one.error or "" for one in trial_of(failing, name).requests]
    assert errors
    assert all(ALL_FAIL[name][1] in one for one in errors)
    judgement = judge_run(failing)
    assert [row.output_tps for row in judgement.summaries if row.variant == name] == [None]
    assert {"launch_failed"} <= {one.code for one in judgement.findings if one.variant == name}


def test_the_next_variant_ran(failing: StoredRun) -> None:
    last = trial_of(failing, "last")
    assert failing.run.complete
    assert (last.record.failure, [one.error for one in last.requests]) == (None, [None] * 5)


def test_an_answer_that_moves_may_take_longer_than_the_watchdog(bed: Bed) -> None:
    path = suite(bed, {}, "slow", "next")
    path.write_text(path.read_text().replace("base_step_s: 0.002", "base_step_s: 0.3").replace("[2]", "[4]"))
    done = bed.run(str(path), "--rehearse", "--quiet")
    assert done.returncode == 0, done.stderr
    for trial in bed.stored().trials:
        longest_s = max(one.done_s - one.sent_s for one in trial.requests)
        assert longest_s > 2, "stall_timeout_s"
        assert trial.record.failure is None


def test_a_run_whose_disk_was_full_goes_on_when_there_is_room(bed: Bed) -> None:
    path = suite(bed, {}, "plain", "next")
    path.write_text(path.read_text().replace(*MANY).replace("concurrency: [2]", "concurrency: [16]"))
    assert bed.run(str(path), "--rehearse", "--full", "--quiet", limit_bytes=300 * 1024).returncode == 2
    (folder,) = (bed.folder / "results").iterdir()
    done = finish(bed.start_plain("--resume", str(folder), "--quiet"))
    assert done.returncode == 0, done.stderr
    stored = bed.stored()
    assert stored.run.complete
    assert [(one.record.complete, one.record.failure) for one in stored.trials] == [(True, None)] * 2
    assert [sum(not one.warmup for one in trial.requests) for trial in stored.trials] == [400, 400]
