"""Too few requests for a 99th percentile."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence

ENOUGH_COUNT: Final = 100


def check(evidence: Evidence) -> Iterable[Finding]:
    """Once for the whole run."""
    counts = [row.ttft.count for row in evidence.summaries if row.ttft is not None]
    few = [count for count in counts if count < ENOUGH_COUNT]
    if few:
        yield Finding(
            code="few_requests",
            severity="note",
            message=f"p99 of fewer than {ENOUGH_COUNT} requests is the slowest one, or nearly so.",
            evidence=f"{len(few)} of {len(counts)} cells have {min(few)} to {max(few)} requests",
            remedy="Raise `request_count` in the workload, or `launches`, where p99 matters.",
        )


CHECK: Final[Check] = check
