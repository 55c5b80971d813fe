"""What the launcher `slurm` makes of jobs that end early, and of a Slurm that is silent. Slurm is a few lines here."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from specbench.errors import SpecbenchError
from specbench.execution.bench import Bench
from specbench.execution.interrupt import Interrupt
from specbench.execution.launchers import queue, slurm
from specbench.execution.launchers.orders import Order
from specbench.plan import make_plan
from specbench.records import Event, RunRecord, TrialRecord
from specbench.store import RunWriter
from specbench.suite import Hardware, Model, Server, Suite, Variant, Workload


class Cluster:
    """Each job does `done_count` of its launches, then ends as `state`; `silence`: questions that get no answer."""

    def __init__(self, done_count: int, state: str, silence: int = 0) -> None:
        self.done_count, self.state, self.silence = done_count, state, silence
        self.orders: list[Order] = []

    async def submit(self, words: list[str], script: str) -> str:
        order = msgspec.json.decode(script.splitlines()[2], type=Order)
        self.orders.append(order)
        writer = RunWriter(Path(order.folder))
        for place, trial in enumerate(order.trials[: self.done_count + 1]):
            with writer.open_trial(trial) as one:
                one.write_manifest(TrialRecord(trial=trial, engine="fake", complete=place < self.done_count))
        return str(len(self.orders))

    async def queued(self, name_beginning: str) -> list[queue.Queued]:
        if self.orders and self.silence:
            self.silence -= 1
            raise queue.SilentError("squeue refused: Unable to contact slurm controller")
        return []

    async def last_state(self, job_id: str) -> str:
        return self.state


class Ran:
    """The launcher over five arms of one block."""

    def __init__(self, folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("submit", "queued", "last_state"):
            monkeypatch.setattr(queue, name, getattr(cluster, name))
        monkeypatch.setattr(slurm, "POLL_S", 0.0)
        plan = make_plan(
            Suite(
                name="s",
                path="s.yaml",
                model=Model(path="m"),
                variants=tuple(Variant(name=name, engine="fake", server=Server()) for name in "abcde"),
                baseline="a",
                workloads=(Workload(name="w"),),
                hardware=Hardware(gpu_count=1),
                launcher="slurm",
            )
        )
        events: list[Event] = []
        self.done: list[TrialRecord] = []
        bench = Bench(plan=plan, on_event=events.append)
        run = RunRecord(
            suite_name="s", suite_path="s.yaml", suite={}, trials=plan.trials, started_utc="", specbench_version=""
        )

        async def launch() -> None:
            launcher = slurm.Slurm(bench, RunWriter(folder), Interrupt(), list(plan.trials), self.done, run)
            await asyncio.wait_for(launcher.run(), 60)

        asyncio.run(launch())
        self.told = [event.text for event in events]


def test_jobs_that_get_on_are_followed_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(1, "TIMEOUT")
    ran = Ran(tmp_path, cluster, monkeypatch)
    assert [len(order.trials) for order in cluster.orders] == [5, 4, 3, 2, 1]
    assert [record.complete and record.failure is None for record in ran.done] == [True] * 5
    assert "job 1 ended (TIMEOUT) before b.launch0, c.launch0, d.launch0, e.launch0 were done; begun again" in ran.told


def test_jobs_that_never_get_on_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(0, "TIMEOUT")
    ran = Ran(tmp_path, cluster, monkeypatch)
    assert len(cluster.orders) == slurm.ATTEMPTS
    causes = {record.failure.cause for record in ran.done if record.failure}
    assert causes == {
        "job 3 ended (TIMEOUT) before a.launch0, b.launch0, c.launch0, d.launch0, e.launch0 were done, "
        "like the 2 jobs before it; raise slurm.time_limit"
    }


def test_work_that_is_done_needs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(5, "UNKNOWN", silence=10**9)
    ran = Ran(tmp_path, cluster, monkeypatch)
    assert len(ran.done) == 5
    assert sum(text.startswith("Slurm does not answer; the jobs go on without it") for text in ran.told) == 1


def test_a_silence_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(2, "NODE_FAIL", silence=3)
    refusals = iter((True, True))
    submit = cluster.submit

    async def hesitant(words: list[str], script: str) -> str:
        if len(cluster.orders) > 0 and next(refusals, False):
            raise queue.SilentError("sbatch refused: Unable to contact slurm controller")
        return await submit(words, script)

    monkeypatch.setattr(cluster, "submit", hesitant)
    ran = Ran(tmp_path, cluster, monkeypatch)
    assert [len(order.trials) for order in cluster.orders] == [5, 3, 1]
    assert len(ran.done) == 5
    assert any(text.startswith("1 more job waits here until the cluster takes more: sbatch refused") for text in ran.told)


def test_a_cluster_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(5, "COMPLETED")

    async def refuse(words: list[str], script: str) -> str:
        raise SpecbenchError("sbatch refused: Invalid account")

    monkeypatch.setattr(cluster, "submit", refuse)
    with pytest.raises(SpecbenchError, match="Invalid account"):
        Ran(tmp_path, cluster, monkeypatch)
