"""Runs a plan: new, or on from where it was cut off, whatever becomes of each launch."""

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

import specbench
from specbench import clock, datasets
from specbench.errors import SpecbenchError
from specbench.execution.bench import Bench, OnEvent, obstacles, prepare, prompt_obstacles
from specbench.execution.environment import environment
from specbench.execution.interrupt import SIGNALLED, Interrupt
from specbench.execution.keeping import clean_logs
from specbench.execution.launchers import queue
from specbench.execution.launchers.local import Local
from specbench.execution.launchers.slurm import Slurm, held_trials
from specbench.execution.loop import loop_factory
from specbench.execution.reaper import end_leftovers
from specbench.execution.resume import Resume, refuse_changes, whole_launches
from specbench.execution.slots import PORTS
from specbench.plan import Plan, Trial
from specbench.records import Event, RunRecord, TrialRecord
from specbench.store import RunWriter, create_run, open_run, read_run
from specbench.suite import Workload
from specbench.units import counted


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
    fetch_models(bench)
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
        fetch_models(bench)
        held = asyncio.run(held_trials(resume.folder)) if bench.suite.launcher == "slurm" else frozenset()
        for trial, whole in kept.items():
            on_event(Event(kind="kept", trial=trial, at_s=whole.ended_s or 0.0))
        stay = "is whole and stays" if len(kept) == 1 else "are whole and stay"
        on_event(Event(kind="note", text=f"{len(kept)} of {counted(len(plan.trials), 'launch')} {stay}"))
        for trial in plan.trials:
            aside = writer.set_aside(trial) if trial not in kept and trial not in held else None
            if aside is not None:
                clean_logs(aside, bench.secrets)
                on_event(Event(kind="note", text=f"{trial.folder} was cut off; what there is of it is now in {aside}"))
        resumed_utc = (*stored.run.resumed_utc, clock.utc_text())
        record = structs.replace(stored.run, complete=False, ended_utc=None, resumed_utc=resumed_utc)
        return _driven(_run_all(bench, writer, record, kept))


def make_ready(bench: Bench) -> None:
    """Ends what killed runs left behind, then raises SpecbenchError with all that is lacking. A cluster's nodes look for
    themselves, in their jobs."""
    if bench.suite.launcher == "slurm":
        found = (*prompt_obstacles(bench), *filter(None, [queue.lacking()]))
    else:
        asyncio.run(end_leftovers(lambda text: bench.on_event(Event(kind="note", text=text))))
        found = asyncio.run(obstacles(bench))
    if found:
        raise SpecbenchError("\n".join(found))


def fetch_models(bench: Bench) -> None:
    """Where they are needed: on this machine."""
    if bench.suite.launcher == "local":
        prepare(bench)


def _driven(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(work)


async def _run_all(bench: Bench, writer: RunWriter, run: RunRecord, kept: Mapping[Trial, TrialRecord]) -> Outcome:
    """`kept`: launches that are whole already."""
    writer.write_run(run)
    interrupt = Interrupt()
    done = list(kept.values())
    waiting = [trial for trial in bench.plan.trials if trial not in kept]
    with interrupt.listening():
        if bench.suite.launcher == "slurm":
            await Slurm(bench, writer, interrupt, waiting, done, run).run()
        else:
            await Local(bench, writer, interrupt, waiting, done).run()
    complete = len(done) == len(bench.plan.trials) and all(record.complete for record in done)
    writer.write_run(structs.replace(run, ended_utc=clock.utc_text(), complete=complete))
    done.sort(key=lambda record: record.trial.order_index)
    failures = [(one.trial.variant, one.failure) for one in done if one.failure and one.failure.kind != "interrupted"]
    failed = tuple(f"{name}: {failure.cause}" for name, failure in failures)
    return Outcome(folder=writer.folder, failed=failed, interrupted_by=interrupt.number)


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
        environment=bench.secrets.tree(environment()),
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
    return record | ({"source": bench.secrets.tree(source(workload))} if source else {})
