"""Going on with a run that was cut off: which launches are whole, and whether others may stand beside them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

import specbench
from specbench import datasets
from specbench.errors import SpecbenchError
from specbench.execution.bench import Bench, launched_by_us
from specbench.execution.environment import environment
from specbench.plan import Trial
from specbench.records import TrialRecord
from specbench.store import StoredRun
from specbench.suite import Suite
from specbench.suite.secrets import Secrets

SHOWN_COUNT: Final = 10
MACHINE: Final = ("machine", "cpu_model", "cpu_count", "memory_bytes")
"""Facts of the environment that two halves of one run must share."""
ELSEWHERE: Final = ("path", "sources")
"""Of a suite: where its text came from."""


class Resume(Struct, frozen=True, kw_only=True):
    """The wish to go on with a run."""

    folder: Path
    redo_failed: bool = False
    """Launches that ended in a failure are done again too."""


def whole_launches(stored: StoredRun, redo_failed: bool) -> dict[Trial, TrialRecord]:
    """Those that are kept: complete, and no line lost since."""
    return {
        one.record.trial: one.record
        for one in stored.trials
        if one.record.complete
        and not (one.missing_count or one.dropped_count)
        and not (redo_failed and one.record.failure is not None)
    }


def refuse_changes(bench: Bench, stored: StoredRun, kept: Mapping[Trial, TrialRecord]) -> None:
    """Raises SpecbenchError that says what is no longer as it was, a line each. `bench.prompts` must have been read."""
    found = list(dict.fromkeys([*_run_changes(bench, stored), *_launch_changes(bench, kept)]))
    if not found:
        return
    more = [f"and {len(found) - SHOWN_COUNT} more"] if len(found) > SHOWN_COUNT else []
    head = f"{stored.folder}: can't be gone on with, its launches would not be of one kind; begin a new run, or undo this:"
    raise SpecbenchError("\n".join([head, *(f"  {one}" for one in (*found[:SHOWN_COUNT], *more))]))


def _run_changes(bench: Bench, stored: StoredRun) -> Iterator[str]:
    run = stored.run
    if run.specbench_version != specbench.__version__:
        yield _changed("specbench", run.specbench_version, specbench.__version__)
    yield from changes(
        _suite_tree(msgspec.convert(run.suite, Suite), bench.secrets), _suite_tree(bench.suite, bench.secrets), "suite"
    )
    if run.trials != bench.plan.trials:
        yield _changed("the plan", _listed(run.trials), _listed(bench.plan.trials))
    for workload in bench.suite.workloads:
        before = run.datasets.get(workload.name, {}).get("sha256")
        if before is not None and before != datasets.digest(bench.prompts[workload.name]):
            yield f"the prompts of workload '{workload.name}' are no longer the same"
    now = environment()
    for name in MACHINE:
        before = run.environment.get(name)
        if before is not None and now.get(name) is not None and before != now[name]:
            yield _changed(f"this machine ({name})", before, now[name])


def _launch_changes(bench: Bench, kept: Mapping[Trial, TrialRecord]) -> Iterator[str]:
    """Not of a cluster's launches: what its nodes would launch is only known there."""
    for record in kept.values() if bench.suite.launcher == "local" else ():
        variant = bench.suite.variant(record.trial.variant)
        version = bench.version(variant)
        if record.engine_version != version:
            yield _changed(f"{record.engine} of variant '{variant.name}'", record.engine_version, version)
        if record.argv and launched_by_us(bench, variant):
            command = bench.command(variant, record.slot)
            place = f"command of variant '{variant.name}'"
            yield from changes(list(record.argv), list(bench.secrets.argv(command.argv)), place)
            yield from changes(record.env, bench.secrets.env(command.env), f"environment of variant '{variant.name}'")


def _suite_tree(suite: Suite, secrets: Secrets) -> Any:
    tree = msgspec.json.decode(msgspec.json.encode(secrets.tree(msgspec.to_builtins(suite))))
    return {name: value for name, value in tree.items() if name not in ELSEWHERE}


def changes(before: Any, after: Any, place: str) -> Iterator[str]:
    """Where two JSON values differ, a sentence each; items of a list go by their `name` where they have one."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from changes(before.get(name), after.get(name), f"{place}.{name}" if place else name)
    elif isinstance(before, list) and isinstance(after, list) and _are_named(before) and _are_named(after):
        yield from changes({one["name"]: one for one in before}, {one["name"]: one for one in after}, place)
    elif not _equal(before, after):
        yield _changed(place, before, after)


def _are_named(values: Sequence[Any]) -> bool:
    return all(isinstance(one, dict) and "name" in one for one in values)


def _equal(before: Any, after: Any) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (before, after))
    return math.isclose(before, after) if numbers else bool(before == after)


def _changed(what: str, before: Any, after: Any) -> str:
    return f"{what}: was {_shown(before)}, is now {_shown(after)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else "nothing" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else f"{text[:200]}…"


def _listed(trials: Sequence[Trial]) -> str:
    return ", ".join(trial.folder for trial in trials)
