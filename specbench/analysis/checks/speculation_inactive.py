"""Speculation was asked for and nothing shows it."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """An error where the server would show it; a note where it says nothing either way."""
    for name, arm in evidence.arms.items():
        rows = [row for row in evidence.rows(name) if row.request_count > row.failed_count]
        if arm.variant.speculation is None or not rows or any(row.accept_length is not None for row in rows):
            continue
        inactive = "speculation_inactive" in evidence.codes[name]
        yield Finding(
            code="speculation_inactive",
            severity="error" if inactive else "note",
            variant=name,
            message="Speculation was asked for, but no answer carries verify steps and no log line an acceptance length."
            if inactive
            else "Acceptance is unknown: neither the answers nor a log carry it.",
            evidence=counted(sum(row.request_count for row in rows), "request"),
            remedy="Read the server's log for the line that drops the drafter, and its resolved arguments."
            if inactive
            else "Name the server's log in the suite (`log:`), or use an engine that counts verify steps.",
        )


CHECK: Final[Check] = check
