"""`packing: control`: how much slower the same variant is with others beside it."""

from collections.abc import Iterable, Iterator
from statistics import geometric_mean
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Key, arm_of
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.summaries import figure
from specbench.records import TrialRecord
from specbench.units import Ratio

SLIGHT_RATIO: Final = 0.03
"""Below this, packing changes less than launches of one server usually differ."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant that was measured both ways, and one where control was asked for and gave nothing."""
    if evidence.suite.packing != "control":
        return
    found = {name: dict(_ratios(evidence, name)) for name in evidence.arms}
    yield from (_finding(evidence, name, ratios) for name, ratios in found.items() if ratios)
    if not any(found.values()):
        yield Finding(
            code="packing_interference",
            severity="warning",
            message="Packing was to be controlled, and no variant was measured both packed and alone.",
            remedy="See which launches failed; a variant that needs more than half of the GPUs can't be packed at all.",
        )


def _ratios(evidence: Evidence, name: str) -> Iterator[tuple[Key, Ratio]]:
    """tok/s packed over tok/s alone, by level."""
    arm = evidence.arms[name]
    alone = [one for one in evidence.stored.trials if one.record.trial.variant == name and one.record.trial.alone]
    levels = {key: evidence.suite.workload(key[0]) for key in arm.cells}
    for key, cell in arm_of(arm.variant, alone, levels).cells.items():
        pair = figure(arm.cells[key], "output_tps"), figure(cell, "output_tps")
        if pair[0] and pair[1]:
            yield key, pair[0] / pair[1]


def _finding(evidence: Evidence, name: str, ratios: dict[Key, Ratio]) -> Finding:
    mean = geometric_mean(ratios.values())
    disturbed = any(abs(ratio - 1) > SLIGHT_RATIO for ratio in ratios.values())
    neighbours_count = max(_neighbours_count(one.record) for one in evidence.stored.trials if _is_of(one.record, name))
    others = f"with up to {neighbours_count} beside it" if neighbours_count else "though nothing ran beside it"
    return Finding(
        code="packing_interference",
        severity="warning" if disturbed else "note",
        variant=name,
        message=f"Packed ({others}) it gave {mean:.3f}× the tok/s that it gives alone.",
        evidence="; ".join(f"{key[0]} at {key[1]}: {ratio:.3f}×" for key, ratio in ratios.items()),
        remedy="Compare packed launches with packed ones only, or set `packing: off`." if disturbed else "",
    )


def _is_of(record: TrialRecord, name: str) -> bool:
    return record.trial.variant == name and not record.trial.alone


def _neighbours_count(record: TrialRecord) -> int:
    """Launches that ran beside it at any time."""
    return len(record.lease.neighbours) if record.lease else 0


CHECK: Final[Check] = check
