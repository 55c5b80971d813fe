"""Which launches, how many of them, and which ports a run may use."""

import argparse
from collections.abc import Sequence

from msgspec.structs import replace

from specbench.errors import SpecbenchError
from specbench.plan import Plan, launch_estimate_s
from specbench.suite import Suite
from specbench.suite.scaling import Launcher


def chosen(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with only these variants' launches, all when none is named; the baseline stays in the suite."""
    known = [variant.name for variant in plan.suite.variants]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SpecbenchError(f"there is no variant '{unknown[0]}'; there are: {', '.join(known)}")
    if not names:
        return plan
    trials = [trial for trial in plan.trials if trial.variant in names]
    kept = tuple(one for one in plan.suite.variants if one.name in (*names, plan.suite.baseline))
    suite = replace(plan.suite, variants=kept)
    return Plan(
        suite=suite,
        trials=tuple(replace(trial, order_index=index) for index, trial in enumerate(trials)),
        estimate_s=sum(launch_estimate_s(suite, suite.variant(trial.variant)) for trial in trials),
    )


def launched_by(suite: Suite, launcher: Launcher | None) -> Suite:
    """The suite with another launcher than it names. Raises SpecbenchError where they do not go together."""
    suite = suite if launcher is None else replace(suite, launcher=launcher)
    if suite.launcher == "slurm" and suite.packing == "control":
        raise SpecbenchError("packing: control is measured by the local launcher; with slurm write packing: on or off")
    return suite


def port_range(text: str) -> range:
    """`20000-29999`, or one port."""
    first, _, last = text.partition("-")
    if not first.isdigit() or not (last or first).isdigit() or not 0 < int(first) <= int(last or first) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is no range of ports; write FROM-TO, such as 20000-29999")
    return range(int(first), int(last or first) + 1)


def launch_count(text: str) -> int:
    """A whole number from 1."""
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of launches; write a whole number such as 5")
    return int(text)


def with_launches(suite: Suite, launches: int | None) -> Suite:
    """The suite with so many launches a variant; its own number when None."""
    return suite if launches is None else replace(suite, launches=launches)
