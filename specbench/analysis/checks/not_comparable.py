"""Levels at which no speed-up is given, since the two arms did not do the same work."""

import shlex
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, parity
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    baseline = evidence.arms[evidence.suite.baseline]
    for name, obstacles in evidence.obstacles.items():
        if not obstacles:
            continue
        levels = ", ".join(f"{workload} at {concurrency}" for workload, concurrency in obstacles)
        yield Finding(
            code="not_comparable",
            severity="warning",
            variant=name,
            message=f"Not comparable with '{evidence.suite.baseline}': {next(iter(obstacles.values()))}.",
            evidence=f"{len(obstacles)} of {counted(len(evidence.arms[name].cells), 'level')}: {levels}",
            remedy=f"{parity.remedy(evidence.arms[name], baseline, obstacles)} Then measure both again: "
            f"{_command(evidence, name)}",
        )


def _command(evidence: Evidence, name: str) -> str:
    return shlex.join(["specbench", "run", evidence.suite.path, "--variant", evidence.suite.baseline, name])


CHECK: Final[Check] = check
