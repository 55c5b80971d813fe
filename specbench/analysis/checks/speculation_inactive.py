"""Speculation was asked for and nothing shows it."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from specbench.analysis import Finding
from specbench.analysis.cells import Arm
from specbench.analysis.checks import Check, Evidence
from specbench.analysis.dropped import reason
from specbench.units import counted


class Words(NamedTuple):
    """Of a finding."""

    severity: Literal["error", "note"]
    message: str
    remedy: str
    line: str = ""


UNKNOWN: Final = Words(
    "note",
    "Acceptance is unknown: neither the answers nor a log carry it.",
    "Name the server's log in the suite (`log:`), or use an engine that counts verify steps.",
)
UNTOLD: Final = Words(
    "error",
    "Speculation was asked for, but no answer carries verify steps and no log line an acceptance length.",
    "Read the server's log for the line that drops the drafter, and its resolved arguments.",
)


def check(evidence: Evidence) -> Iterable[Finding]:
    """An error where the server would show it, with the cause that its log names; a note where it says nothing either
    way."""
    for name, arm in evidence.arms.items():
        rows = [row for row in evidence.rows(name) if row.request_count > row.failed_count]
        if not arm.is_asked_to_draft or not rows or any(row.accept_length is not None for row in rows):
            continue
        words = _words(arm) if "speculation_inactive" in evidence.codes[name] else UNKNOWN
        count = counted(sum(row.request_count for row in rows), "request")
        yield Finding(
            code="speculation_inactive",
            severity=words.severity,
            variant=name,
            message=words.message,
            evidence=f"{count}; its log: {words.line}" if words.line else count,
            remedy=words.remedy,
        )


def _words(arm: Arm) -> Words:
    why = reason(arm.drafter_log)
    if why is None:
        return UNTOLD
    remedy = f"{why.remedy[:1].upper()}{why.remedy[1:]}." if why.remedy else UNTOLD.remedy
    return Words("error", f"No draft token was ever proposed: {why.message}.", remedy, why.line)


CHECK: Final[Check] = check
