"""Tokens counted at the end and chunk by chunk that differ."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """Usage tokens = Σ chunk tokens, one finding a variant."""
    for name, arm in evidence.arms.items():
        requests = [
            request
            for cell in arm.cells.values()
            for request in cell.served
            if request.chunk_tokens and request.output_tokens is not None
        ]
        bad = [request for request in requests if sum(request.chunk_tokens) != request.output_tokens]
        if bad:
            yield Finding(
                code="token_counts_disagree",
                severity="warning",
                variant=name,
                message="The tokens of the chunks do not add up to the usage at the end.",
                evidence=f"{len(bad)} of {counted(len(requests), 'request')}; request {bad[0].request_index}: "
                f"{sum(bad[0].chunk_tokens)} in chunks, {bad[0].output_tokens} in usage",
                remedy="tok/s uses the usage, TPOT the chunks: trust neither until the server's streaming is understood.",
            )


CHECK: Final[Check] = check
