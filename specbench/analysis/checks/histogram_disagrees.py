"""Two counters of the engine that must agree and do not."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """Σ of the acceptance histogram = verify steps, one finding a variant."""
    for name, arm in evidence.arms.items():
        requests = [
            request
            for cell in arm.cells.values()
            for request in cell.served
            if request.accept_histogram and request.verify_count is not None
        ]
        bad = [request for request in requests if sum(request.accept_histogram) != request.verify_count]
        if bad:
            yield Finding(
                code="histogram_disagrees",
                severity="warning",
                variant=name,
                message="The acceptance histogram does not add up to the verify steps.",
                evidence=f"{len(bad)} of {counted(len(requests), 'request')}; request {bad[0].request_index}: "
                f"{sum(bad[0].accept_histogram)} in the histogram, {counted(bad[0].verify_count or 0, 'verify step')}",
                remedy="Read the engine's release notes on these counters; AL here uses the counts, not the histogram.",
            )


CHECK: Final[Check] = check
