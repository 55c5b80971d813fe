"""Acceptance length by its sources: the requests' own counters are the figure, log lines and chunks must agree with it."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Arm, Cell
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.metrics import logged_accept_length, pooled_accept_length
from specbench.analysis.profile import depths, streams_by_step
from specbench.dialects.metrics import accept_length_between, gauged_accept_length

LOG_RATIO: Final = 0.05
"""Log lines are samples of some steps, printed with two decimals and weighted by the batch."""
CHUNKS_RATIO: Final = 0.01
GAUGE_RATIO: Final = 0.1
"""A gauge shows one interval of the level: only one that did not move at all is told of."""
FEWEST_LINES: Final = 10
FEWEST_STEPS: Final = 200


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a variant and source, about the level where they differ most."""
    for name, arm in evidence.arms.items():
        if arm.variant.speculation is None:
            continue
        for source, tolerance, reason, pairs in (
            ("the log", LOG_RATIO, _log_reason(arm), _by_log(arm)),
            (
                "the counters of /metrics",
                CHUNKS_RATIO,
                "they hold requests of others, or count steps that drafted only",
                _by_counters(arm),
            ),
            ("the gauge of /metrics", GAUGE_RATIO, "it did not move while the level ran: it is stale", _by_gauge(arm)),
            ("the chunks", CHUNKS_RATIO, "chunks may have been split or joined on the way", _by_chunks(arm)),
        ):
            worst = max(pairs, key=lambda one: abs(one[1] / one[2] - 1), default=None)
            if worst is not None and abs(worst[1] / worst[2] - 1) > tolerance:
                cell, other, exact = worst
                yield Finding(
                    code="sources_disagree",
                    severity="warning",
                    variant=name,
                    message=f"Acceptance by {source} is {other:.2f}, by the requests' own counters {exact:.2f} "
                    f"({cell.workload} at {cell.concurrency}): {reason}.",
                    evidence=f"tolerated: {tolerance:.0%}",
                    remedy="Trust the requests' counters; the other source covers other steps, or counts otherwise.",
                )


def _by_log(arm: Arm) -> list[tuple[Cell, float, float]]:
    found = []
    for cell in arm.cells.values():
        exact, logged = pooled_accept_length(cell.served), logged_accept_length(cell)
        lines = sum(one.accept_length is not None for one in cell.samples)
        if exact and logged and lines >= FEWEST_LINES:
            found.append((cell, logged, exact))
    return found


def _by_chunks(arm: Arm) -> list[tuple[Cell, float, float]]:
    found = []
    for cell in arm.cells.values():
        requests = [one for one in cell.served if streams_by_step(one)]
        parts = list(depths(requests))
        steps, exact = sum(one.verify_count for one in parts), pooled_accept_length(requests)
        if exact and steps >= FEWEST_STEPS and len(requests) == len(cell.served):
            found.append((cell, sum(one.accept_length * one.verify_count for one in parts) / steps, exact))
    return found


def _by_counters(arm: Arm) -> list[tuple[Cell, float, float]]:
    """Only where every request drafted: vLLM's and llama.cpp's counters leave out steps without a draft."""
    found = []
    for cell in arm.cells.values():
        readings = [load.counters for load in cell.loads if load.counters]
        exact = pooled_accept_length(cell.served)
        if exact is None or len(readings) != 1 or len(cell.served) < len(cell.requests):
            continue
        counted = accept_length_between(*readings[0])
        if counted is not None and all(one.verify_count for one in cell.served):
            found.append((cell, counted, exact))
    return found


def _by_gauge(arm: Arm) -> list[tuple[Cell, float, float]]:
    found = []
    for cell in arm.cells.values():
        exact = pooled_accept_length(cell.served)
        readings = [[gauged_accept_length(one) for one in load.counters] for load in cell.loads if load.counters]
        shown = next((after for before, after in readings if after is not None and before == after), None)
        if exact is not None and shown is not None:
            found.append((cell, shown, exact))
    return found


def _log_reason(arm: Arm) -> str:
    ranks = {str(sample.rank) for cell in arm.cells.values() for sample in cell.samples if sample.rank}
    if arm.resolved.get("data_parallel", 1) not in (1, None) or len(ranks) > 1:
        return "the log may show some data-parallel ranks only"
    lines = sum(len(cell.samples) for cell in arm.cells.values())
    return f"{lines} log lines show a part of the steps, and the first after a pause holds steps from before it"


CHECK: Final[Check] = check
