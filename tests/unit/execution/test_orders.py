"""What is asked of Slurm, and what a job tells back."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specbench.execution.launchers.orders import Job, Order, Told, remember, remembered, script, submission
from specbench.plan import make_plan
from specbench.records import Event
from specbench.suite import Hardware, Model, Server, Suite, Variant, Workload
from specbench.suite.scaling import Slurm


def a_suite(width: int = 8, **changes: Any) -> Suite:
    fields: dict[str, Any] = {
        "name": "s",
        "path": "s.yaml",
        "model": Model(path="m"),
        "variants": (Variant(name="v", engine="sglang", server=Server(tensor_parallel=width)),),
        "baseline": "v",
        "workloads": (Workload(name="w"),),
        "hardware": Hardware(gpu_count=16),
        "launcher": "slurm",
    }
    return Suite(**(fields | changes))


def words(suite: Suite) -> list[str]:
    return submission(suite, Job(name="s-1.0001", trials=make_plan(suite).trials), Path("/results/s-1"))


def test_what_is_asked() -> None:
    slurm = Slurm(partition="gpu", account="lab", qos="long", constraint="h200", time_limit="4:00:00", args=("--mem=0",))
    assert words(a_suite(slurm=slurm)) == [
        "--job-name=s-1.0001",
        "--output=/results/s-1/jobs/s-1.0001.log",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--no-requeue",
        "--exclusive",
        "--partition=gpu",
        "--account=lab",
        "--qos=long",
        "--constraint=h200",
        "--time=4:00:00",
        "--gres=gpu:8",
        "--mem=0",
    ]


@pytest.mark.parametrize(("width", "nodes", "gpus"), [(1, 1, 1), (8, 1, 8), (16, 2, 8), (12, 2, 6)])
def test_nodes_and_gpus(width: int, nodes: int, gpus: int) -> None:
    found = words(a_suite(width, packing="on"))
    assert {f"--nodes={nodes}", f"--gres=gpu:{gpus}"} <= set(found)
    assert "--exclusive" not in found


def test_no_gpus_on_a_cpu() -> None:
    assert not [word for word in words(a_suite(1, hardware=Hardware())) if word.startswith("--gres")]


def test_an_order_survives_its_script() -> None:
    suite = a_suite()
    order = Order(
        folder="/results/s-1",
        name="s-1.0001",
        suite=suite,
        trials=make_plan(suite).trials,
        rehearsal=None,
        refused={"v": 'it\'s $HOME `and` "more"'},
        ports=(20000, 20010),
        datasets={},
    )
    text = script(order)
    assert text.startswith("#!/bin/sh\nexec ")
    assert msgspec.json.decode(text.splitlines()[2], type=Order) == order


def test_jobs_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    trials = make_plan(a_suite()).trials
    jobs = [Job(name=f"s-1.{number:04}", trials=trials, job_id=str(number)) for number in (2, 10)]
    for job in reversed(jobs):
        remember(tmp_path, job)
    assert remembered(tmp_path) == jobs
    assert remembered(tmp_path / "elsewhere") == []


def test_events_are_read_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "one.events"
    told = Told(path)
    assert told.read() == []
    lines = [json.dumps({"kind": "note", "text": text}) for text in ("first", "second")]
    path.write_text(f"{lines[0]}\n{lines[1][:9]}")
    assert told.read() == [Event(kind="note", text="first")]
    path.write_text(f"{lines[0]}\n{lines[1]}\n")
    assert told.read() == [Event(kind="note", text="second")]
    assert Told(path, from_now=True).read() == []
