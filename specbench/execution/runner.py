"""Runs a plan: one launch after another (a rehearsal's side by side), whatever becomes of each."""

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

import specbench
from specbench import clock, datasets
from specbench.errors import SpecbenchError
from specbench.execution.bench import Bench, OnEvent, obstacles, prepare
from specbench.execution.environment import environment
from specbench.execution.keeping import clean_logs
from specbench.execution.reaper import end_leftovers
from specbench.execution.resume import Resume, refuse_changes, whole_launches
from specbench.execution.slots import PORTS
from specbench.execution.trial import LaunchRun
from specbench.plan import REHEARSED_SERVERS, Plan, Trial
from specbench.records import Event, RunRecord, TrialRecord
from specbench.store import RunWriter, create_run, open_run, read_run
from specbench.suite import Workload

SIGNALLED: Final = 128
"""A shell's way of telling which signal ended a program."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How a run ended."""

    folder: Path
    failed: tuple[str, ...] = ()
    """`variant: cause`, one a launch that failed."""
    interrupted_by: int = 0
    """The signal; 0 when it ran to its end."""

    @property
    def exit_code(self) -> int:
        """0 when all went well, 1 when a launch failed, 128 and the signal's number when one ended it."""
        if self.interrupted_by:
            return SIGNALLED + self.interrupted_by
        return 1 if self.failed else 0


def run_plan(
    plan: Plan,
    suite_text: str,
    results: Path,
    on_event: OnEvent,
    rehearsal: str | None = None,
    ports: range = PORTS,
    refused: Mapping[str, str] | None = None,
) -> Outcome:
    """Raises SpecbenchError, before anything is started or written, with every obstacle on a line of its own."""
    bench = Bench(plan=plan, on_event=on_event, rehearsal=rehearsal, ports=ports, refused=refused)
    make_ready(bench)
    prepare(bench)
    with create_run(results, plan.suite.name, bench.secrets.clean(suite_text)) as writer:
        return _driven(_run_all(bench, writer, run_record(bench), {}))


def resume_plan(
    plan: Plan,
    resume: Resume,
    on_event: OnEvent,
    rehearsal: str | None = None,
    ports: range = PORTS,
    refused: Mapping[str, str] | None = None,
) -> Outcome:
    """Does the launches of a stored run that are not whole. Raises SpecbenchError, before anything is moved or started:
    another run writes there, something is lacking, or what was launched then would be launched otherwise now."""
    bench = Bench(plan=plan, on_event=on_event, rehearsal=rehearsal, ports=ports, refused=refused)
    with open_run(resume.folder) as writer:
        stored = read_run(resume.folder)
        make_ready(bench)
        kept = whole_launches(stored, resume.redo_failed)
        refuse_changes(bench, stored, kept)
        prepare(bench)
        on_event(Event(kind="note", text=f"{len(kept)} of {len(plan.trials)} launches are whole and stay"))
        for trial in plan.trials:
            aside = writer.set_aside(trial) if trial not in kept else None
            if aside is not None:
                clean_logs(aside, bench.secrets)
                on_event(Event(kind="note", text=f"{trial.folder} was cut off; what there is of it is now in {aside}"))
        resumed_utc = (*stored.run.resumed_utc, clock.utc_text())
        record = structs.replace(stored.run, complete=False, ended_utc=None, resumed_utc=resumed_utc)
        return _driven(_run_all(bench, writer, record, kept))


def make_ready(bench: Bench) -> None:
    """Ends what killed runs left behind, then raises SpecbenchError with all that is lacking."""
    asyncio.run(end_leftovers(lambda text: bench.on_event(Event(kind="note", text=text))))
    found = asyncio.run(obstacles(bench))
    if found:
        raise SpecbenchError("\n".join(found))


def _driven(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(work)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed; None leaves it to asyncio."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class Interrupt:
    """SIGINT, SIGTERM and SIGHUP (the terminal closes; servers have sessions of their own and would stay).

    The first cancels what runs, the second lets nothing wait any longer, the third leaves at once: what was recorded is
    stored already, and the servers' watchers end them.
    """

    def __init__(self) -> None:
        self.hurry = asyncio.Event()
        self.number = 0
        """The first signal's."""
        self._task = asyncio.current_task()

    @property
    def asked(self) -> bool:
        """Whether the run is to end."""
        return bool(self.number)

    def ask(self, number: int) -> None:
        """Called by the signal."""
        if self.hurry.is_set():
            os._exit(SIGNALLED + self.number)
        if self.number:
            self.hurry.set()
        elif self._task is not None:
            self.number = number
            self._task.cancel()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only the main thread can listen; elsewhere nothing is changed."""
        numbers = heard_signals() if threading.current_thread() is threading.main_thread() else ()
        loop = asyncio.get_running_loop()
        for number in numbers:
            loop.add_signal_handler(number, self.ask, int(number))
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def heard_signals() -> tuple[signal.Signals, ...]:
    """SIGHUP only where `nohup` does not ask to ignore it."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hangup)


async def _run_all(bench: Bench, writer: RunWriter, run: RunRecord, kept: Mapping[Trial, TrialRecord]) -> Outcome:
    """`kept`: launches that are whole already."""
    writer.write_run(run)
    interrupt = Interrupt()
    done = list(kept.values())
    waiting = deque(trial for trial in bench.plan.trials if trial not in kept)
    with interrupt.listening():
        await _launch_all(bench, writer, interrupt, waiting, done)
    complete = len(done) == len(bench.plan.trials) and all(record.complete for record in done)
    writer.write_run(structs.replace(run, ended_utc=clock.utc_text(), complete=complete))
    done.sort(key=lambda record: record.trial.order_index)
    failed = tuple(f"{one.trial.variant}: {one.failure.cause}" for one in done if one.failure)
    return Outcome(folder=writer.folder, failed=failed, interrupted_by=interrupt.number)


async def _launch_all(
    bench: Bench, writer: RunWriter, interrupt: Interrupt, waiting: deque[Trial], done: list[TrialRecord]
) -> None:
    """In the plan's order. An interrupt reaches every launch that runs, and each ends in its own way."""
    count = REHEARSED_SERVERS if bench.rehearsal is not None else 1
    lanes = {asyncio.create_task(_lane(bench, writer, interrupt, waiting, done)) for _ in range(count)}
    try:
        await asyncio.wait(lanes, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        if not interrupt.asked:
            raise
    finally:
        waiting.clear()
        for lane in lanes:
            lane.cancel()
        await asyncio.wait(lanes)
    faults = [fault for lane in lanes if not lane.cancelled() and (fault := lane.exception()) is not None]
    if faults:
        raise faults[0]


async def _lane(
    bench: Bench, writer: RunWriter, interrupt: Interrupt, waiting: deque[Trial], done: list[TrialRecord]
) -> None:
    """One server after another. Real ones have the machine to themselves; simulated ones need little of it."""
    while waiting and not interrupt.asked:
        trial = waiting.popleft()
        with writer.open_trial(trial) as trial_writer:
            done.append(await LaunchRun(bench, trial, trial_writer, interrupt.hurry).run())


def run_record(bench: Bench) -> RunRecord:
    """`run.json` as it is before the first launch."""
    suite = bench.suite
    return RunRecord(
        suite_name=suite.name,
        suite_path=suite.path,
        suite=bench.secrets.tree(msgspec.to_builtins(suite)),
        trials=bench.plan.trials,
        started_utc=clock.utc_text(),
        simulated=bench.rehearsal is not None,
        rehearsal=bench.rehearsal,
        checked=bench.refused is not None,
        specbench_version=specbench.__version__,
        environment=environment(),
        datasets={workload.name: _dataset_record(bench, workload) for workload in suite.workloads},
    )


def _dataset_record(bench: Bench, workload: Workload) -> dict[str, Any]:
    prompts = bench.prompts[workload.name]
    record = {
        "dataset": workload.dataset,
        "prompt_ids": [prompt.id for prompt in prompts],
        "sha256": datasets.digest(prompts),
    }
    source = getattr(datasets.get(workload.dataset), "source", None)
    return record | ({"source": source(workload)} if source else {})
