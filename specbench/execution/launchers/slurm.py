"""Launches as jobs of a cluster. The harness submits, shows what the jobs tell, and does again what did not come to its end.

Everything that must be known later is in the run's folder or in Slurm, so the harness may die and another one go on.
"""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from specbench import clock
from specbench.errors import SpecbenchError, StoreError
from specbench.execution.bench import Bench
from specbench.execution.interrupt import Interrupt
from specbench.execution.launchers import queue
from specbench.execution.launchers.orders import (
    FOLDER,
    Job,
    Order,
    Told,
    job_path,
    remember,
    remembered,
    script,
    submission,
)
from specbench.placement import job_trials
from specbench.plan import Trial
from specbench.records import Event, Failure, RunRecord, TrialRecord
from specbench.store import RunWriter, read_trial
from specbench.units import counted

POLL_S: Final = 2.0
"""Between two questions to Slurm: one for all jobs of a run."""
CANCEL_S: Final = 120.0
ATTEMPTS: Final = 3
"""Jobs in a row that Slurm may end early before any of their launches is whole: time limit, preemption, a node that
fails."""
TAIL_COUNT: Final = 20
NOT_AGAIN: Final = ("CANCELLED",)
"""Somebody wanted it to end."""


class Slurm:
    """Runs `waiting`; what comes of each is added to `done`."""

    def __init__(
        self,
        bench: Bench,
        writer: RunWriter,
        interrupt: Interrupt,
        waiting: list[Trial],
        done: list[TrialRecord],
        run: RunRecord,
    ) -> None:
        self._bench, self._writer, self._interrupt = bench, writer, interrupt
        self._waiting, self._done, self._run = waiting, done, run
        self._folder = writer.folder
        self._jobs: dict[str, Job] = {}
        """By name, those that are not over."""
        self._told: dict[str, Told] = {}
        self._states: dict[str, str] = {}
        self._backlog: list[tuple[tuple[Trial, ...], int]] = []
        """What each further job is to run, and how often that was begun before."""
        self._is_held_back = False
        self._number = 0
        self._silent = False
        """Slurm did not answer the last time."""

    async def run(self) -> None:
        """Until every launch has its record. An interrupt cancels the jobs."""
        (self._folder / FOLDER).mkdir(exist_ok=True)
        try:
            await self._attach()
            self._backlog += [(trials, 0) for trials in job_trials(self._bench.suite, self._waiting)]
            while await self._submit_all():
                await asyncio.sleep(POLL_S)
                await self._look()
        except asyncio.CancelledError:
            if not self._interrupt.asked:
                raise
        finally:
            self._waiting.clear()
            if self._jobs:
                await asyncio.shield(asyncio.create_task(self._cancel()))

    async def _attach(self) -> None:
        """To jobs of this run that another harness left behind."""
        jobs = remembered(self._folder)
        self._number = len(jobs)
        alive = {one.name: one.job_id for one in await queue.queued(self._prefix)}
        for job in jobs:
            if job.name in alive:
                self._told[job.name] = Told(job_path(self._folder, job.name, "events"), from_now=True)
                self._adopt(replace(job, job_id=alive[job.name]))
                self._tell(f"attached to job {alive[job.name]}: {_listed(job.trials)}")
        held = {trial for job in self._jobs.values() for trial in job.trials}
        self._waiting[:] = [trial for trial in self._waiting if trial not in held]

    @property
    def _prefix(self) -> str:
        return name_beginning(self._folder)

    def _adopt(self, job: Job) -> None:
        remember(self._folder, job)
        self._jobs[job.name] = job
        self._told.setdefault(job.name, Told(job_path(self._folder, job.name, "events")))

    async def _submit_all(self) -> bool:
        """False when nothing is left. A cluster may take only so many of one user's: the others follow as these end. Raises
        SpecbenchError when it takes none, though it answers."""
        while self._backlog:
            try:
                await self._submit(*self._backlog[0])
            except SpecbenchError as error:
                if not self._jobs and not isinstance(error, queue.SilentError):
                    raise
                if not self._is_held_back:
                    waiting = counted(len(self._backlog), "more job", "waits/wait")
                    self._tell(f"{waiting} here until the cluster takes more: {error}")
                self._is_held_back = True
                break
            self._backlog.pop(0)
        return bool(self._jobs or self._backlog)

    async def _submit(self, trials: tuple[Trial, ...], attempt_index: int) -> None:
        """Remembered before it is submitted: a harness that dies in between finds the job by its name."""
        self._number += 1
        job = Job(name=f"{self._prefix}{self._number:04}", trials=trials, attempt_index=attempt_index)
        remember(self._folder, job)
        try:
            job_id = await queue.submit(submission(self._bench.suite, job, self._folder), script(self._order(job)))
        except SpecbenchError:
            self._number -= 1
            job_path(self._folder, job.name, "json").unlink()
            raise
        self._adopt(replace(job, job_id=job_id))
        self._tell(f"job {job_id}: {_listed(trials)}")

    def _order(self, job: Job) -> Order:
        bench = self._bench
        return Order(
            folder=str(self._folder.absolute()),
            name=job.name,
            suite=bench.suite,
            trials=job.trials,
            rehearsal=bench.rehearsal,
            refused=None if bench.refused is None else dict(bench.refused),
            ports=(bench.ports[0], bench.ports[-1]),
            datasets=self._run.datasets,
        )

    async def _look(self) -> None:
        """What the jobs told since, and which are over."""
        try:
            alive = {one.name: one for one in await queue.queued(self._prefix)}
        except SpecbenchError as error:
            if not self._silent:
                self._tell(f"Slurm does not answer; the jobs go on without it: {error}")
            self._silent = True
            alive = None
        self._forward(self._jobs)
        if alive is None:
            await self._end_whole()
            return
        self._silent = False
        for job in list(self._jobs.values()):
            if job.name not in alive:
                await self._end(job)
            elif alive[job.name].state != self._states.get(job.name):
                self._states[job.name] = alive[job.name].state
                why = f" ({alive[job.name].reason})" if alive[job.name].state == "PENDING" else ""
                self._tell(f"job {job.job_id} is {alive[job.name].state}{why}")

    def _forward(self, names: Iterable[str]) -> None:
        for name in names:
            for event in self._told[name].read():
                self._bench.on_event(event)

    async def _end_whole(self) -> None:
        """Jobs that have done all they had to, as the folder shows; nobody else can be asked."""
        for job in list(self._jobs.values()):
            if all(self._whole(trial) for trial in job.trials):
                await self._end(job)

    async def _end(self, job: Job) -> None:
        """Keeps the launches that are whole. The others are begun again, whole, in a new job."""
        del self._jobs[job.name]
        self._forward([job.name])
        rest = tuple(trial for trial in job.trials if not self._is_kept(trial))
        if not rest:
            return
        state = await queue.last_state(job.job_id or "")
        sentence = f"job {job.job_id} ended ({state}) before {_listed(rest)} {'was' if len(rest) == 1 else 'were'} done"
        for trial in rest:
            self._writer.set_aside(trial)
        attempt_index = job.attempt_index + 1 if len(rest) == len(job.trials) else 0
        if state in NOT_AGAIN:
            self._give_up(rest, sentence, job)
        elif attempt_index >= ATTEMPTS:
            advice = "; raise slurm.time_limit" if state == "TIMEOUT" else ""
            self._give_up(rest, f"{sentence}, like the {ATTEMPTS - 1} jobs before it{advice}", job)
        else:
            self._tell(f"{sentence}; begun again")
            self._backlog.insert(0, (rest, attempt_index))

    def _whole(self, trial: Trial) -> TrialRecord | None:
        """Its record, once it is whole."""
        with suppress(StoreError):
            record = read_trial(self._folder / trial.folder, trial).record
            return record if record.complete else None
        return None

    def _is_kept(self, trial: Trial) -> bool:
        """A record that is whole counts."""
        record = self._whole(trial)
        self._done += [record] if record else []
        return record is not None

    def _give_up(self, trials: tuple[Trial, ...], sentence: str, job: Job) -> None:
        """Their failure is a result, like any other."""
        tail = _tail(job_path(self._folder, job.name, "log"))
        for trial in trials:
            variant = self._bench.suite.variant(trial.variant)
            record = TrialRecord(
                trial=trial,
                engine=variant.engine,
                simulated=self._bench.rehearsal is not None,
                rehearsal=self._bench.rehearsal,
                started_utc=clock.utc_text(),
                failure=Failure(kind="job_lost", cause=sentence, log_tail=tail),
                complete=True,
            )
            with self._writer.open_trial(trial) as writer:
                writer.write_manifest(record)
            self._done.append(record)
            self._bench.on_event(Event(kind="failure", trial=trial, text=sentence))

    async def _cancel(self) -> None:
        """Nothing of a job's servers is left when Slurm has ended it."""
        try:
            await queue.cancel([job.job_id for job in self._jobs.values() if job.job_id])
            give_up_s = clock.now_s() + CANCEL_S
            while clock.now_s() < give_up_s and not self._interrupt.hurry.is_set():
                if not await _alive(self._prefix, self._jobs):
                    break
                await asyncio.sleep(POLL_S / 4)
        except SpecbenchError as error:
            names = ", ".join(str(job.job_id) for job in self._jobs.values())
            self._tell(f"jobs {names} could not be cancelled: {error}")
        self._forward(self._jobs)
        for job in self._jobs.values():
            for trial in job.trials:
                self._is_kept(trial)

    def _tell(self, text: str) -> None:
        self._bench.on_event(Event(kind="note", text=text))


async def _alive(prefix: str, names: Collection[str]) -> bool:
    return any(one.name in names for one in await queue.queued(prefix))


def name_beginning(folder: Path) -> str:
    """Of the names of a run's jobs."""
    return f"{folder.absolute().name}."


async def held_trials(folder: Path) -> frozenset[Trial]:
    """Launches of a run that jobs hold now: nobody may touch their folders."""
    if not (folder / FOLDER).is_dir():
        return frozenset()
    alive = {one.name for one in await queue.queued(name_beginning(folder))}
    return frozenset(trial for job in remembered(folder) if job.name in alive for trial in job.trials)


def _listed(trials: Collection[Trial]) -> str:
    return ", ".join(trial.folder for trial in trials)


def _tail(path: Path) -> tuple[str, ...]:
    """The last lines of what a job printed."""
    try:
        return tuple(path.read_text(errors="replace").splitlines()[-TAIL_COUNT:])
    except OSError:
        return ()
