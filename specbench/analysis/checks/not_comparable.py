"""Levels at which no speed-up is given, since the two arms did not do the same work."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name, obstacles in evidence.obstacles.items():
        if not obstacles:
            continue
        levels = ", ".join(f"{workload} at {concurrency}" for workload, concurrency in obstacles)
        yield Finding(
            code="not_comparable",
            severity="warning",
            variant=name,
            message=f"Not comparable with '{evidence.suite.baseline}': {next(iter(obstacles.values()))}.",
            evidence=f"{len(obstacles)} of {len(evidence.arms[name].cells)} levels: {levels}",
            remedy="Give both arms the same limits in the suite (`server.args: [--max-running-requests, N]`), remove the "
            "cause of failed requests, and run both again.",
        )


CHECK: Final[Check] = check
