"""Levels that a launch recorded only in part."""

import shlex
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name, arm in evidence.arms.items():
        if arm.cut_off:
            yield Finding(
                code="cut_off_level",
                severity="warning",
                variant=name,
                message="A level was recorded only in part; it gives no figure.",
                evidence="; ".join(arm.cut_off[:3]) + (f"; and {len(arm.cut_off) - 3} more" if len(arm.cut_off) > 3 else ""),
                remedy=_remedy(evidence, name),
            )


def _remedy(evidence: Evidence, name: str) -> str:
    """By what happened: a file that lost lines, a run that was stopped, or neither."""
    mine = [one for one in evidence.stored.trials if one.record.trial.variant == name]
    again = shlex.join(["specbench", "run", "--resume", evidence.stored.folder])
    damaged = [one for one in mine if one.record.complete and (one.missing_count or one.dropped_count)]
    if damaged:
        return (
            f"{damaged[0].folder}/requests.jsonl lost lines: put it back from a copy, or measure that launch again: {again}"
        )
    if any(not one.record.complete for one in mine):
        return f"The run was stopped in the middle; measure what is lacking: {again}"
    name = shlex.join(["specbench", "run", evidence.suite.path, "--variant", evidence.suite.baseline, name])
    return f"Its records do not agree with its manifest; measure it anew: {name}"


CHECK: Final[Check] = check
