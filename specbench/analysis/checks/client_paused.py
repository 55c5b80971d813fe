"""Seconds of a closed loop in which nothing was in flight: the client stood still, and the server waited for it."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Cell, Load
from specbench.analysis.checks import Check, Evidence
from specbench.units import Second

PAUSE_S: Final = 0.5
PAUSE_RATIO: Final = 0.02
"""Of the level's time; both must be passed."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, of its worst level. A request is due when its stream is read on, so `client_lagged` can't see this."""
    for name, arm in evidence.arms.items():
        paused = [
            (found, cell) for cell in arm.cells.values() if cell.concurrency and (found := idle_s(cell)) > limit_s(cell)
        ]
        if paused:
            worst_s, cell = max(paused, key=lambda one: one[0])
            yield Finding(
                code="client_paused",
                severity="warning",
                variant=name,
                message="The load client stood still: no request was in flight, and tok/s holds that time.",
                evidence=f"{cell.workload} at {cell.concurrency}: {worst_s:.1f} s of {_wall_s(cell):.1f} s",
                remedy="Was the machine suspended, or specbench stopped or starved of CPU? Measure this variant again.",
            )


def idle_s(cell: Cell) -> Second:
    """Over its launches."""
    return sum(map(_idle_s, cell.loads))


def limit_s(cell: Cell) -> Second:
    """What is tolerated."""
    return max(PAUSE_S, PAUSE_RATIO * _wall_s(cell))


def _idle_s(load: Load) -> Second:
    idle_s, until_s = 0.0, None
    for one in sorted(load.requests, key=lambda one: one.sent_s):
        idle_s += max(0.0, one.sent_s - until_s) if until_s is not None else 0.0
        until_s = max(one.done_s, until_s or 0.0)
    return idle_s


def _wall_s(cell: Cell) -> Second:
    loads = [load.requests for load in cell.loads if load.requests]
    return sum(max(one.done_s for one in each) - min(one.due_s for one in each) for each in loads)


CHECK: Final[Check] = check
