"""Answers without a count of tokens, or with one at the end only."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.timing import tokens_of
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant: no count at all, else the assumption that replaces counts by chunk."""
    for name, arm in evidence.arms.items():
        served = [request for cell in arm.cells.values() for request in cell.served]
        bare = [request for request in served if tokens_of(request) is None]
        if bare:
            yield _bare(name, len(bare), len(served))
        elif any(row.tpot_source == "assumed_first_token" for row in evidence.rows(name)):
            yield _at_end(name)


def _bare(name: str, bare_count: int, served_count: int) -> Finding:
    return Finding(
        code="no_token_counts",
        severity="warning",
        variant=name,
        message="The server counts no tokens in its answers; tok/s and TPOT are left out, not guessed.",
        evidence=f"{bare_count} of {counted(served_count, 'request')}",
        remedy="Use an endpoint that sends usage (`include_usage`), or the engine's own API (`api: generate`).",
    )


def _at_end(name: str) -> Finding:
    return Finding(
        code="no_token_counts",
        severity="note",
        variant=name,
        message="The server counts tokens only at the end: TPOT assumes one token in the first chunk, and steady-state "
        "tok/s spreads the tokens evenly over the chunks.",
        remedy="Ask for counts in every chunk (`continuous_usage_stats`), or use the engine's own API (`api: generate`).",
    )


CHECK: Final[Check] = check
