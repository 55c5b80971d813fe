"""A server that did not start, or died."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted

NEVER_LAUNCHED: Final = "It was not launched: put right what `specbench check` names, or run with --no-check."


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant: the first failure, and how many launches share the fate."""
    for name, arm in evidence.arms.items():
        if not arm.failures:
            continue
        first = arm.failures[0]
        tail = first.log_tail[-1].strip() if first.log_tail else ""
        before = f"; measured before, and in no table: {', '.join(arm.before_failure)}" if arm.before_failure else ""
        code = "" if first.exit_code is None else f", exit code {first.exit_code}"
        yield Finding(
            code="launch_failed",
            severity="error",
            variant=name,
            message=f"{len(arm.failures)} of {counted(arm.launch_count, 'launch')} failed: {first.cause}",
            evidence=f"{first.kind}{code}{before}" + (f"; last log line: {tail}" if tail else ""),
            remedy=NEVER_LAUNCHED
            if first.kind == "preflight"
            else f"Read {name}.launch*/server.log; its last 20 lines are in manifest.json.",
        )


CHECK: Final[Check] = check
