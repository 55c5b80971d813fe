"""Acceptance length by its sources: the requests' own counters are the figure, log lines and chunks must agree with it."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from specbench.analysis import Finding
from specbench.analysis.cells import ALL_WORKLOADS, Arm, Cell, pooled
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.metrics import counted_accept_length, logged_accept_length, pooled_accept_length
from specbench.analysis.profile import depths, streams_by_step
from specbench.dialects.metrics import counted_between, gauged_accept_length

TOLERATED_RATIO: Final = 0.01
SERIOUS_RATIO: Final = 0.05
"""Log lines are samples of some steps, printed with two decimals and weighted by the batch: a little more is no alarm."""
GAUGE_RATIO: Final = 0.1
"""A gauge shows one interval of the level: only one that did not move at all is told of."""
FEWEST_LINES: Final = 10
FEWEST_STEPS: Final = 200


class Difference(NamedTuple):
    """One level's acceptance length by another source, beside the requests' counters."""

    cell: Cell
    other: float
    exact: float

    @property
    def ratio(self) -> float:
        return abs(self.other / self.exact - 1)


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a variant and source, about the level where they differ most."""
    for name, arm in evidence.arms.items():
        if arm.variant.speculation is None:
            continue
        for source, tolerance, differences in (
            ("the log", TOLERATED_RATIO, _by_log(arm)),
            ("the counters of /metrics", TOLERATED_RATIO, _by_counters(arm)),
            ("the gauge of /metrics", GAUGE_RATIO, _by_gauge(arm)),
            ("the chunks", TOLERATED_RATIO, _by_chunks(arm)),
        ):
            worst = max(differences, key=lambda one: one.ratio, default=None)
            if worst is None or worst.ratio <= tolerance:
                continue
            reason, explained = _reason(source, arm, worst)
            yield Finding(
                code="sources_disagree",
                severity="note" if explained or (source == "the log" and worst.ratio <= SERIOUS_RATIO) else "warning",
                variant=name,
                message=f"Acceptance by {source} and by the requests' own counters differ: {reason}.",
                evidence=f"{worst.other:.3f} and {worst.exact:.3f} ({_place(worst.cell)})",
                remedy="Trust the requests' counters; the other source covers other steps, or counts otherwise.",
            )


def _reason(source: str, arm: Arm, worst: Difference) -> tuple[str, bool]:
    """Why they differ, and whether that explains the whole of it."""
    if source == "the log":
        return _log_reason(arm), False
    if source == "the chunks":
        return _chunk_reason(worst)
    if source == "the gauge of /metrics":
        return "the gauge did not move while the level ran: it is stale", False
    return "they hold requests of others", False


def _chunk_reason(worst: Difference) -> tuple[str, bool]:
    """An answer that ends at its token limit ends inside a step: what was accepted beyond is counted, and not sent."""
    served = worst.cell.served
    sent = sum(sum(one.chunk_tokens[1:]) for one in served)
    steps = sum(one.verify_count or 0 for one in served)
    counted = sum((one.correct_tokens or 0) + (one.verify_count or 0) for one in served)
    cut = counted - sent
    if 0 < cut <= len(served) * (worst.cell.proposed_tokens or 0) and abs((sent + cut) / steps / worst.exact - 1) < 0.01:
        return "answers that end at their token limit end inside a step, and what it accepted beyond is not sent", True
    return "chunks may have been split or joined on the way", False


def _piles(arm: Arm) -> list[Cell]:
    """Each level, and all of them together: short levels leave few lines each."""
    cells = [cell for cell in arm.cells.values() if cell.served]
    return [*cells, pooled(cells)] if len(cells) > 1 else cells


def _place(cell: Cell) -> str:
    return "all levels" if cell.workload == ALL_WORKLOADS else f"{cell.workload} at {cell.concurrency}"


def _by_log(arm: Arm) -> list[Difference]:
    found = []
    for cell in _piles(arm):
        exact, logged = _drafted_length(cell) or pooled_accept_length(cell.served), logged_accept_length(cell)
        lines = sum(one.accept_length is not None for one in cell.samples)
        if exact and logged and lines >= FEWEST_LINES:
            found.append(Difference(cell, logged, exact))
    return found


def _drafted_length(cell: Cell) -> float | None:
    """By `/metrics`, of the steps that drafted: those that vLLM's log tells of. None unless every launch was counted."""
    counted = [counted_between(*load.counters) if load.counters else None for load in cell.loads]
    known = [one for one in counted if one is not None]
    steps = sum(one.draft_count for one in known)
    if not steps or len(known) < len(counted):
        return None
    return 1 + sum(one.accepted_tokens for one in known) / steps


def _by_chunks(arm: Arm) -> list[Difference]:
    found = []
    for cell in _piles(arm):
        requests = [one for one in cell.served if streams_by_step(one)]
        parts = list(depths(requests))
        steps, exact = sum(one.verify_count for one in parts), pooled_accept_length(requests)
        if exact and steps >= FEWEST_STEPS and len(requests) == len(cell.served):
            found.append(Difference(cell, sum(one.accept_length * one.verify_count for one in parts) / steps, exact))
    return found


def _by_counters(arm: Arm) -> list[Difference]:
    """With the steps that drafted nothing, which vLLM's and llama.cpp's counters leave out."""
    found = []
    for cell in arm.cells.values():
        exact, counted = pooled_accept_length(cell.served), counted_accept_length(cell)
        if exact is not None and counted is not None and len(cell.served) == len(cell.requests):
            found.append(Difference(cell, counted, exact))
    return found


def _by_gauge(arm: Arm) -> list[Difference]:
    found = []
    for cell in arm.cells.values():
        exact = pooled_accept_length(cell.served)
        readings = [[gauged_accept_length(one) for one in load.counters] for load in cell.loads if load.counters]
        shown = next((after for before, after in readings if after is not None and before == after), None)
        if exact is not None and shown is not None:
            found.append(Difference(cell, shown, exact))
    return found


def _log_reason(arm: Arm) -> str:
    ranks = {str(sample.rank) for cell in arm.cells.values() for sample in cell.samples if sample.rank}
    if arm.resolved.get("data_parallel", 1) not in (1, None) or len(ranks) > 1:
        return "the log may show some data-parallel ranks only"
    lines = sum(len(cell.samples) for cell in arm.cells.values())
    return f"{lines} log lines show a part of the steps, and the first after a pause holds steps from before it"


CHECK: Final[Check] = check
