"""Answers come in one piece at their end: something between server and client holds the stream back."""

from collections.abc import Iterable
from statistics import median
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.records import RequestRecord

LATE_RATIO: Final = 0.9
"""Of a request's time passed before its first chunk."""
FEWEST_TOKENS: Final = 16
"""Shorter answers may well come in one piece."""
MOST_CHUNKS: Final = 2


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a variant."""
    for name, arm in evidence.arms.items():
        for cell in arm.cells.values():
            shares = [share for one in cell.served if (share := _late(one)) is not None]
            if not shares or median(shares) < LATE_RATIO:
                continue
            yield Finding(
                code="stream_buffered",
                severity="warning",
                variant=name,
                message=f"Answers arrive in one piece at their end ({cell.workload} at {cell.concurrency}): TTFT is the "
                "whole answer's time, and there is no TPOT.",
                evidence=f"{median(shares):.0%} of an answer's time passes before its first chunk ({len(shares)} answers)",
                remedy="Look for a proxy that buffers (nginx: `proxy_buffering off`), or a server that was not asked to "
                "stream.",
            )
            break


def _late(request: RequestRecord) -> float | None:
    """Share of its time before the first chunk; None for a short answer or one that came in many chunks counts as 0."""
    if not request.chunk_s or (request.output_tokens or 0) < FEWEST_TOKENS or request.done_s <= request.sent_s:
        return None
    if len(request.chunk_s) > MOST_CHUNKS:
        return 0.0
    return (request.chunk_s[0] - request.sent_s) / (request.done_s - request.sent_s)


CHECK: Final[Check] = check
