"""Too few requests for a 99th percentile."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted

ENOUGH_COUNT: Final = 100


def check(evidence: Evidence) -> Iterable[Finding]:
    """Once for the whole run."""
    counts = [row.ttft.count for row in evidence.summaries if row.ttft is not None]
    few = [count for count in counts if count < ENOUGH_COUNT]
    if few:
        told = counted(few[0], "request") if min(few) == max(few) else f"{min(few)} to {max(few)} requests"
        yield Finding(
            code="few_requests",
            severity="note",
            message=f"p99 of fewer than {ENOUGH_COUNT} requests is the slowest one, or nearly so.",
            evidence=f"{len(few)} of {counted(len(counts), 'cell')} {'has' if len(few) == 1 else 'have'} {told}",
            remedy="Raise `request_count` in the workload, or `launches`, where p99 matters.",
        )


CHECK: Final[Check] = check
