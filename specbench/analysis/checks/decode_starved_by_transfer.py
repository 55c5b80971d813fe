"""Prefill and decode run apart, and the decode server waits for the caches of prompts more than it decodes."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, verdicts
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a variant."""
    for name, arm in evidence.arms.items():
        for cell in arm.cells.values():
            lines = [(one.running_requests, verdicts.transferring(one.extra)) for one in cell.samples]
            if not verdicts.is_starved(lines):
                continue
            yield Finding(
                code="decode_starved_by_transfer",
                severity="warning",
                variant=name,
                message=f"The decode server waits for KV caches on their way from prefill ({cell.workload} at "
                f"{cell.concurrency}): its batch stays small, so speculation is measured on another batch than offered.",
                evidence=f"in most of {counted(len(lines), 'decode line')} more requests are in transfer than run",
                remedy="More prefill servers or a faster link; or measure on a server that does both.",
            )
            break


CHECK: Final[Check] = check
