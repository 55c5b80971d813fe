"""Levels that ask the same prompt more than once."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """Once for the run."""
    told: dict[str, str] = {}
    for _, cell in evidence.cells():
        for load in cell.loads:
            first_turns = [one.prompt_id for one in load.requests if one.turn_index == 0]
            if len(set(first_turns)) < len(first_turns):
                told.setdefault(
                    cell.workload,
                    f"{cell.workload}: {counted(len(set(first_turns)), 'prompt')} for "
                    f"{counted(len(first_turns), 'request')}",
                )
    if told:
        yield Finding(
            code="prompts_repeat",
            severity="note",
            message="The set holds fewer prompts than a level asks for, so some are asked again: the server may know them.",
            evidence="; ".join(told.values()),
            remedy="Take a larger set, or fewer requests a level.",
        )


CHECK: Final[Check] = check
