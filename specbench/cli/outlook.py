"""A plan with each launch's command: what `plan` shows."""

import os

from msgspec import Struct, field
from msgspec.structs import replace

from specbench import engines
from specbench.engines import Command, Engine, Launch
from specbench.execution import selftest
from specbench.execution.scale import one_process_rps, packed_width
from specbench.placement import Planned, forecast, job_trials
from specbench.plan import (
    REHEARSED_SERVERS,
    Plan,
    Slot,
    Trial,
    launch_estimate_s,
    make_plan,
    nodes_needed,
    planned_slot,
    rehearse,
)
from specbench.preflight.suites import with_methods
from specbench.suite import Suite, Variant
from specbench.suite.secrets import secrets_of
from specbench.units import Second

SHOWN_PORT = 30000
"""Stands for the free port that a run leases."""


class PlannedLaunch(Struct, frozen=True, kw_only=True):
    """One launch, as far as it can be known before."""

    trial: Trial
    variant: Variant
    slot: Slot
    engine_title: str
    engine_version: str | None
    launches: bool
    """False when the server is somebody else's."""
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    estimate_s: Second
    start_s: Second | None = None
    """When it would begin, were the estimates right; None where jobs wait in a queue."""
    nodes_count: int = 1
    """Nodes that its server spans."""
    added_flags: tuple[str, ...] = ()
    """Of the further nodes' commands, beside their own ranks."""
    job_index: int | None = None
    """Which of Slurm's jobs it runs in, from 0."""


class Outlook(Struct, frozen=True, kw_only=True):
    """Everything that `plan` prints."""

    plan: Plan
    launches: tuple[PlannedLaunch, ...]
    rehearsal: str | None
    """How a rehearsal shrinks the load; None for a real run."""
    servers_count: int
    """Servers that run side by side."""

    narrowed: str | None = None
    """Why packing is narrowed on this machine; None where it is not."""

    @property
    def estimate_s(self) -> Second:
        """Of the whole plan: until the last launch ends, were all GPUs there at once. Jobs: one after another."""
        ends = [one.start_s + one.estimate_s for one in self.launches if one.start_s is not None]
        return max(ends) if ends else self.plan.estimate_s / self.servers_count

    @property
    def gpu_hours(self) -> float:
        """GPUs of each launch times its length."""
        held_s = sum(one.estimate_s * len(one.slot.gpu_ids) * one.nodes_count for one in self.launches if one.launches)
        return held_s / 3600

    @property
    def cost(self) -> float | None:
        """In the suite's currency; None without a price."""
        price = self.plan.suite.hardware.gpu_hour_price
        return None if price is None else price * self.gpu_hours


def look_ahead(suite: Suite, *, rehearsing: bool, full: bool = False) -> Outlook:
    """Without secrets. Raises SpecbenchError where an engine can't be rehearsed."""
    suite, sentence = with_methods(suite), None
    if rehearsing:
        suite, sentence = rehearse(suite, full)
    plan = make_plan(suite)
    servers_count = REHEARSED_SERVERS if rehearsing else 1
    width = packed_width(suite, one_process_rps(selftest.last()), rehearsing)
    is_packed = suite.packing != "off" and suite.launcher == "local"
    is_local = suite.launcher == "local"
    foreseen = forecast(plan, suite.hardware.gpu_count, width.servers_count if is_packed else 1) if is_local else ()
    shown = foreseen if is_packed or not rehearsing else ()
    launches = tuple(_planned(suite, trial, rehearsing, _seen(shown, trial)) for trial in plan.trials)
    launches = _in_jobs(plan, launches) if suite.launcher == "slurm" else launches
    outlook = Outlook(
        plan=plan,
        launches=launches,
        rehearsal=sentence,
        servers_count=_abreast(foreseen) if is_packed else servers_count,
        narrowed=width.sentence if is_packed and width.servers_count < suite.hardware.gpu_count else None,
    )
    return secrets_of(suite, os.environ).record(outlook)


def _in_jobs(plan: Plan, launches: tuple[PlannedLaunch, ...]) -> tuple[PlannedLaunch, ...]:
    jobs = {trial: index for index, job in enumerate(job_trials(plan.suite, plan.trials)) for trial in job}
    return tuple(replace(one, job_index=jobs[one.trial]) for one in launches)


def _abreast(foreseen: tuple[Planned, ...]) -> int:
    """The most launches that run at the same time."""
    moments = [one.start_s for one in foreseen]
    return max((sum(one.start_s <= moment < one.end_s for one in foreseen) for moment in moments), default=1)


def _seen(foreseen: tuple[Planned, ...], trial: Trial) -> Planned | None:
    return next((one for one in foreseen if one.trial == trial), None)


def _slot(suite: Suite, variant: Variant, seen: Planned | None) -> Slot:
    """With names that stand for what is only known at run."""
    slot = replace(planned_slot(suite, variant), port=SHOWN_PORT)
    nodes = tuple(f"NODE{rank}" for rank in range(nodes_needed(suite, variant)))
    if len(nodes) > 1:
        return replace(slot, nodes=nodes, init_address=f"{nodes[0]}:{SHOWN_PORT + 1}")
    return replace(slot, gpu_ids=seen.gpu_ids) if seen else slot


def _command(engine: Engine, launch: Launch, rehearsing: bool) -> Command:
    return engine.rehearsal(launch) if rehearsing else engine.command(launch) if engine.launches else Command(argv=())


def _planned(suite: Suite, trial: Trial, rehearsing: bool, seen: Planned | None) -> PlannedLaunch:
    variant = suite.variant(trial.variant)
    engine = engines.get(variant.engine)
    version = suite.rehearsal.version if rehearsing else engine.version(variant)
    slot = _slot(suite, variant, seen)
    launch = Launch(model=suite.model, drafter=suite.drafter_of(variant), variant=variant, slot=slot, version=version)
    command = _command(engine, launch, rehearsing)
    further = _command(engine, replace(launch, node_index=1), rehearsing) if len(slot.nodes) > 1 else command
    faults = suite.rehearsal.fault_words(variant.name) if rehearsing else ()
    return PlannedLaunch(
        trial=trial,
        variant=variant,
        slot=slot,
        engine_title=engine.title,
        engine_version=version,
        launches=engine.launches,
        argv=(*command.argv, *faults),
        env=command.env,
        unset=command.unset,
        estimate_s=launch_estimate_s(suite, variant),
        nodes_count=nodes_needed(suite, variant),
        added_flags=tuple(word for word in further.argv if word.startswith("--") and word not in command.argv),
        start_s=seen.start_s if seen else None,
    )
