"""What the harness and its jobs tell one another: an order with the job's script, files in the run's folder back."""

import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from specbench.placement import gpus_of
from specbench.plan import Trial, nodes_needed
from specbench.records import Event
from specbench.store import replace_file
from specbench.suite import Suite

FOLDER: Final = "jobs"
"""Inside a run's folder."""


class Order(Struct, frozen=True, kw_only=True):
    """What a job is told, on its script's standard input: it may hold secrets, and no file of ours may."""

    folder: str
    """The run's."""
    name: str
    suite: Suite
    trials: tuple[Trial, ...]
    rehearsal: str | None
    refused: dict[str, str] | None
    ports: tuple[int, int]
    """First and last."""
    datasets: dict[str, Any]
    """sha256 of the prompts, by workload: the nodes must read the same ones."""


class Job(Struct, frozen=True, kw_only=True):
    """One job, as it is remembered: `jobs/<name>.json`."""

    name: str
    trials: tuple[Trial, ...]
    attempt_index: int = 0
    """Jobs in a row that had these launches before and finished none."""
    job_id: str | None = None
    """Slurm's; None from the moment before it was submitted."""


def job_path(folder: Path, name: str, suffix: str) -> Path:
    """Of a job's `json`, `log` (what it printed) or `events`."""
    return folder / FOLDER / f"{name}.{suffix}"


def remember(folder: Path, job: Job) -> None:
    """Writes it, as a whole."""
    replace_file(job_path(folder, job.name, "json"), msgspec.json.encode(job))


def remembered(folder: Path) -> list[Job]:
    """All jobs that a run ever had, the oldest first."""
    paths = sorted((folder / FOLDER).glob("*.json"))
    return [msgspec.json.decode(path.read_bytes(), type=Job) for path in paths]


def script(order: Order) -> str:
    """Slurm keeps it as long as the job, readable for its user and the cluster's administrators."""
    text = msgspec.json.encode(order).decode()
    words = f"{sys.executable} -P -m specbench.execution.launchers.job"
    return f"#!/bin/sh\nexec {words} <<'END OF THE ORDER'\n{text}\nEND OF THE ORDER\n"


def submission(suite: Suite, job: Job, folder: Path) -> list[str]:
    """The words for sbatch."""
    trial, slurm = job.trials[0], suite.slurm
    gpus_count, nodes_count = gpus_of(suite, trial), nodes_needed(suite, suite.variant(trial.variant))
    asked = {
        "partition": slurm.partition,
        "account": slurm.account,
        "qos": slurm.qos,
        "constraint": slurm.constraint,
        "time": slurm.time_limit,
        "gres": f"gpu:{gpus_count}" if gpus_count else None,
    }
    return [
        f"--job-name={job.name}",
        f"--output={job_path(folder, job.name, 'log').absolute()}",
        f"--nodes={nodes_count}",
        "--ntasks-per-node=1",
        "--no-requeue",
        *(["--exclusive"] if suite.packing == "off" else []),
        *(f"--{name}={value}" for name, value in asked.items() if value is not None),
        *slurm.args,
    ]


class Told:
    """Events that a job writes, read as they come."""

    def __init__(self, path: Path, from_now: bool = False) -> None:
        self._path = path
        self._offset_bytes = path.stat().st_size if from_now and path.exists() else 0

    def read(self) -> list[Event]:
        """Those that are new and whole."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset_bytes)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset_bytes += len(whole) + len(end)
        return [msgspec.json.decode(line, type=Event) for line in whole.splitlines()]
