"""A plan with each launch's command: what `plan` shows."""

import os

from msgspec import Struct, field
from msgspec.structs import replace

from specbench import engines
from specbench.engines import Command, Launch
from specbench.plan import REHEARSED_SERVERS, Plan, Slot, Trial, launch_estimate_s, make_plan, planned_slot, rehearse
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


class Outlook(Struct, frozen=True, kw_only=True):
    """Everything that `plan` prints."""

    plan: Plan
    launches: tuple[PlannedLaunch, ...]
    rehearsal: str | None
    """How a rehearsal shrinks the load; None for a real run."""
    servers_count: int
    """Servers that run side by side."""

    @property
    def estimate_s(self) -> Second:
        """Of the whole plan."""
        return self.plan.estimate_s / self.servers_count


def look_ahead(suite: Suite, *, rehearsing: bool, full: bool = False) -> Outlook:
    """Without secrets. Raises SpecbenchError where an engine can't be rehearsed."""
    suite, sentence = with_methods(suite), None
    if rehearsing:
        suite, sentence = rehearse(suite, full)
    plan = make_plan(suite)
    launches = tuple(_planned(suite, trial, rehearsing) for trial in plan.trials)
    servers_count = REHEARSED_SERVERS if rehearsing else 1
    outlook = Outlook(plan=plan, launches=launches, rehearsal=sentence, servers_count=servers_count)
    return secrets_of(suite, os.environ).record(outlook)


def _planned(suite: Suite, trial: Trial, rehearsing: bool) -> PlannedLaunch:
    variant = suite.variant(trial.variant)
    engine = engines.get(variant.engine)
    version = suite.rehearsal.version if rehearsing else engine.version(variant)
    slot = replace(planned_slot(suite, variant), port=SHOWN_PORT)
    launch = Launch(model=suite.model, drafter=suite.drafter_of(variant), variant=variant, slot=slot, version=version)
    command = engine.rehearsal(launch) if rehearsing else engine.command(launch) if engine.launches else Command(argv=())
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
    )
