"""Jobs of a real Slurm that end before their launches do, and a harness that ends before its jobs."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.e2e import cluster as slurm
from tests.e2e.slurm_bed import Runs

pytestmark = [
    pytest.mark.skipif(slurm.lacking() is not None, reason=str(slurm.lacking())),
    pytest.mark.slow,
]


def test_a_harness_that_is_killed_and_resumed(runs: Runs) -> None:
    process = runs.start(runs.suite(8, 8, 8, 8, tokens=300), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("a.launch0")
    process.kill()
    process.communicate()
    done = runs.resume()
    assert done.returncode == 0, done.stderr
    assert "attached to job" in done.stderr
    stored = runs.bed.stored()
    assert all(one.record.complete and one.record.failure is None for one in stored.trials)
    assert len(stored.trials) == 4
    assert not (Path(stored.folder) / "aside").exists()
    assert len(stored.run.resumed_utc) == 1
    assert len(runs.jobs()) == len(set(runs.jobs())) >= 4


def test_scancel_leaves_no_process(runs: Runs) -> None:
    process = runs.start(runs.suite(8, tokens=3000), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("a.launch0")
    assert runs.processes()
    runs.cluster.ask("scancel", *runs.jobs())
    done = runs.finish(process)
    assert done.returncode == 1, done.stderr
    runs.wait_gone()
    (trial,) = runs.bed.stored().trials
    assert trial.record.failure is not None
    assert trial.record.failure.kind == "job_lost"
    assert "ended (CANCELLED) before a.launch0 was done" in trial.record.failure.cause


def test_ctrl_c_cancels_the_jobs(runs: Runs) -> None:
    process = runs.start(runs.suite(8, 16, tokens=3000), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("a.launch0")
    process.send_signal(signal.SIGINT)
    done = runs.finish(process)
    assert done.returncode == 130, done.stderr
    assert not runs.cluster.ask("squeue", "--noheader").strip()
    assert runs.processes() == []


def test_a_launch_whose_job_ends_early_is_done_again_whole(runs: Runs) -> None:
    process = runs.start(runs.suite(8, 8, tokens=300, allocation="block"), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("b.launch0")
    job = psutil.Process(runs.manifest("b.launch0")["process"]["watcher_pid"]).parent()
    assert job is not None
    os.kill(job.pid, signal.SIGKILL)
    done = runs.finish(process)
    assert done.returncode == 0, done.stderr
    assert "ended (FAILED) before b.launch0 was done; begun again" in done.stderr
    stored = runs.bed.stored()
    assert [one.record.complete for one in stored.trials] == [True, True]
    assert [one.name for one in (Path(stored.folder) / "aside").iterdir()] == ["b.launch0.1"]
    assert len(stored.trials[1].requests) == 4
    assert stored.trials[0].record.slot.nodes == stored.trials[1].record.slot.nodes or len(runs.jobs()) == 2


def test_a_preempted_launch_is_done_again_whole(runs: Runs) -> None:
    process = runs.start(runs.suite(8, 8, tokens=300, allocation="block"), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("b.launch0")
    runs.cluster.ask("sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    done = runs.finish(process)
    assert done.returncode == 0, done.stderr
    assert "ended (PREEMPTED) before b.launch0 was done; begun again" in done.stderr
    done_again_whole(runs, "b", trials_count=2)


def test_a_launch_that_the_time_limit_cuts_off_is_done_again_whole(runs: Runs) -> None:
    """Slurm looks every 30 s whose time is over; the launch is under load for 40 s."""
    process = runs.start(runs.suite(8, tokens=1200), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("a.launch0")
    runs.cluster.ask("scontrol", "update", f"JobId={runs.jobs()[0]}", "EndTime=now")
    done = runs.finish(process)
    assert done.returncode == 0, done.stderr
    assert "ended (TIMEOUT) before a.launch0 was done; begun again" in done.stderr
    done_again_whole(runs, "a", trials_count=1)


def done_again_whole(runs: Runs, name: str, trials_count: int) -> None:
    stored = runs.bed.stored()
    assert [one.record.complete and one.record.failure is None for one in stored.trials] == [True] * trials_count
    assert [len(one.requests) for one in stored.trials] == [4] * trials_count
    assert [one.name for one in (Path(stored.folder) / "aside").iterdir()] == [f"{name}.launch0.1"]
    assert len(runs.jobs()) == 2
    runs.wait_gone()
