"""A server that did not start, or died."""

import shlex
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import STOPPED
from specbench.analysis.checks import Check, Evidence
from specbench.records import Failure
from specbench.units import counted

REMEDIES: Final = {
    "preflight": "It was not launched: put right what `specbench check` names, or run with --no-check.",
    "no_slot": "It was not launched: run it again when the GPUs work, or with fewer of them.",
    "gpu_lost": "It was not launched: look at the driver's log (dmesg, nvidia-smi) and reset or replace the GPU.",
    "gpu_in_use": "It was not launched: end the process that is named, or give other GPUs in hardware.gpu_ids.",
    "lacking": "It was not launched: put right what is named, on that node.",
    "job_lost": "The job's own output is in jobs/ beside the launches; its last lines are in manifest.json.",
}
"""By kind of failure; any other kind leaves a server's log."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant: the first failure, and how many launches share the fate."""
    for name, arm in evidence.arms.items():
        if not arm.failures:
            continue
        failures = [one for one in arm.failures if one.kind != STOPPED] or list(arm.failures)
        first = failures[0]
        verb = "failed:" if arm.has_failed else "was" if len(failures) == 1 else "were"
        tail = first.log_tail[-1].strip() if first.log_tail else ""
        before = f"; measured before, and in no table: {', '.join(arm.before_failure)}" if arm.before_failure else ""
        code = "" if first.exit_code is None else f", exit code {first.exit_code}"
        yield Finding(
            code="launch_failed",
            severity="error" if arm.has_failed else "warning",
            variant=name,
            message=f"{len(failures)} of {counted(arm.launch_count, 'launch')} {verb} {first.cause}",
            evidence=f"{first.kind}{code}{before}" + (f"; last log line: {tail}" if tail else ""),
            remedy=_remedy(first, name, evidence.stored.folder),
        )


def _remedy(first: Failure, name: str, folder: str) -> str:
    if first.kind in REMEDIES:
        return REMEDIES[first.kind]
    if first.kind in (STOPPED, "disk_full", "not_stored"):
        return f"Go on with it: {shlex.join(['specbench', 'run', '--resume', folder])}"
    return f"Read {name}.launch*/server.log; its last 20 lines are in manifest.json."


CHECK: Final[Check] = check
