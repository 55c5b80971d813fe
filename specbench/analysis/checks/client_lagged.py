"""Requests that left later than they were due: the harness, not the server, was slow."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Cell
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.metrics import quantile, ttfts_s
from specbench.units import Second

LAG_S: Final = 0.002
TTFT_RATIO: Final = 0.01


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, about its worst level: p99 of sent - due above 1 % of TTFT p50 or 2 ms, whichever is more.

    A single late request is a hiccup, also where it is more than 1 % of a level's requests.
    """
    for name, arm in evidence.arms.items():
        lagged = [(lag_s(cell), cell) for cell in arm.cells.values() if is_late(cell)]
        if lagged:
            worst_s, cell = max(lagged, key=lambda one: one[0])
            where = f"at {cell.concurrency}" if cell.concurrency else "in an open loop"
            yield Finding(
                code="client_lagged",
                severity="warning",
                variant=name,
                message="The load client sent requests later than they were due; TTFT holds the delay.",
                evidence=f"{cell.workload} {where}: p99 of sent - due {worst_s * 1000:.1f} ms, "
                f"limit {limit_s(cell) * 1000:.1f} ms; levels beyond it: {len(lagged)}",
                remedy="Give the client a core of its own, or a lower load: `specbench selftest` says what it can do here.",
            )


def lag_s(cell: Cell) -> Second:
    """p99 of sent - due over the requests that ended well; 0 without any."""
    return quantile((one.sent_s - one.due_s for one in cell.served), 0.99) or 0.0


def is_late(cell: Cell) -> bool:
    """Whether the level's figures suffer."""
    limit = limit_s(cell)
    return lag_s(cell) > limit and sum(one.sent_s - one.due_s > limit for one in cell.served) > 1


def limit_s(cell: Cell) -> Second:
    """What is tolerated."""
    return max(LAG_S, TTFT_RATIO * (quantile(ttfts_s(cell), 0.5) or 0.0))


CHECK: Final[Check] = check
