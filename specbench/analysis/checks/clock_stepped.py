"""Requests during which the system's clock was set."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant: the kernel stamps arrivals on the clock that was set."""
    for name, arm in evidence.arms.items():
        requests = [request for cell in arm.cells.values() for request in cell.requests]
        stepped_count = sum(one.stepped for one in requests)
        if stepped_count:
            yield Finding(
                code="clock_stepped",
                severity="warning",
                variant=name,
                message=f"The system's clock was set during {stepped_count} of {counted(len(requests), 'request')}: "
                "their times are left out.",
                remedy="Let the clock settle (ntp, chrony) and run this variant again.",
            )


CHECK: Final[Check] = check
