"""Acceptance that was read from log lines."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """Once for the run."""
    names = list(dict.fromkeys(row.variant for row in evidence.summaries if row.accept_source == "log"))
    if names:
        yield Finding(
            code="accept_from_log",
            severity="note",
            message="AL is an estimate from log lines weighted by running requests: the answers carry no verify steps.",
            evidence=f"variants: {', '.join(names)}",
            remedy="Use an API that reports verify steps per request (SGLang: `api: generate`) for an exact figure.",
        )


CHECK: Final[Check] = check
