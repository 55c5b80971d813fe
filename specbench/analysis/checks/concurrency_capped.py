"""A server that lets fewer requests run than are offered."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, parity
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant. SGLang lowers the limit to 48 when speculation is on and none is given."""
    for name, arm in evidence.arms.items():
        capped = {
            key: limit for key in arm.cells if (limit := parity.admitted(arm, key)) is not None and arm.cells[key].requests
        }
        if not capped:
            continue
        limit = min(capped.values())
        offered = max(concurrency for _, concurrency in capped)
        queued = [one.queue_requests or 0 for key in capped for one in arm.cells[key].samples]
        yield Finding(
            code="concurrency_capped",
            severity="warning",
            variant=name,
            message=f"The server runs at most {counted(limit, 'request')} at once, {offered} were offered: the rest waited.",
            evidence=_evidence(arm.admission_limit, queued),
            remedy="Set --max-running-requests to the offered concurrency in every arm, or offer less.",
        )


def _evidence(stated_limit: int | None, queued: list[int]) -> str:
    stated = "" if stated_limit is None else f"max_running_requests {stated_limit} as resolved; "
    return f"{stated}longest queue seen: {max(queued)}" if queued else f"{stated}no queue was logged"


CHECK: Final[Check] = check
