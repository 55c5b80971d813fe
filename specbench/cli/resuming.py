"""The plan of a run that is stored already, as it was or as its suite's file says it now."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from specbench.analysis.cells import suite_of
from specbench.cli.choice import chosen, launched_by, with_launches
from specbench.cli.report import run_folder
from specbench.cli.suites import read_suite
from specbench.errors import SpecbenchError
from specbench.plan import Plan, launch_estimate_s, make_plan, rehearse
from specbench.preflight.suites import with_methods
from specbench.records import RunRecord
from specbench.store import StoredRun, read_run
from specbench.suite import Suite
from specbench.suite.secrets import HIDDEN


def plan_again(folder: Path, suite_path: str | None) -> tuple[Plan, RunRecord]:
    """Of the run in a folder. Raises SpecbenchError, also where its stored suite lacks the secrets that it was run with."""
    stored = read_run(run_folder(folder))
    if suite_path is None and has_hidden(stored.run):
        raise SpecbenchError(f"{folder}: secrets are not stored; give the suite too: specbench run SUITE --resume {folder}")
    return (_stored_plan(stored) if suite_path is None else _new_plan(stored, suite_path)), stored.run


def has_hidden(run: RunRecord) -> bool:
    """Whether something of its suite was hidden before it was stored."""
    return HIDDEN in msgspec.json.encode(run.suite).decode()


def _stored_plan(stored: StoredRun) -> Plan:
    suite, trials = suite_of(stored), stored.run.trials
    return Plan(
        suite=suite, trials=trials, estimate_s=sum(launch_estimate_s(suite, suite.variant(one.variant)) for one in trials)
    )


def _new_plan(stored: StoredRun, path: str) -> Plan:
    suite, launches = launched_by(with_methods(read_suite(path)), suite_of(stored).launcher), _launch_count(stored.run)
    return chosen(make_plan(with_launches(_shrunk(suite, stored.run, launches), launches)), _names(stored.run))


def _launch_count(run: RunRecord) -> int:
    """Launches a variant, as it was begun: `--launches` may have asked for others than the suite does."""
    return max((trial.launch_index for trial in run.trials), default=0) + 1


def _names(run: RunRecord) -> Sequence[str]:
    return list(dict.fromkeys(trial.variant for trial in run.trials))


def _shrunk(suite: Suite, run: RunRecord, launches: int) -> Suite:
    """As the rehearsal shrank it. Raises SpecbenchError where this specbench would shrink it otherwise."""
    if run.rehearsal is None:
        return suite
    for full in (False, True):
        shrunk, sentence = rehearse(suite, full, launches)
        if sentence == run.rehearsal:
            return shrunk
    raise SpecbenchError(f"it was rehearsed by another specbench ({run.specbench_version}) in another way; begin a new run")
