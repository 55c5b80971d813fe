"""Requests that ended with an error."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, with the commonest error."""
    for name, arm in evidence.arms.items():
        requests = [request for cell in arm.cells.values() for request in cell.requests]
        errors = Counter(request.error for request in requests if request.error is not None)
        if errors:
            error, count = errors.most_common(1)[0]
            yield Finding(
                code="failed_requests",
                severity="warning",
                variant=name,
                message=f"{errors.total()} of {counted(len(requests), 'request')} failed; "
                "what failed counts in no figure but `failed`.",
                evidence=f"{count} of them: {error}",
                remedy="Read server.log around these times; a longer `timeout_s` helps only against a time limit.",
            )


CHECK: Final[Check] = check
