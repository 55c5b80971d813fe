"""Requests whose records can't be true."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.records import RequestRecord
from specbench.store import StoredTrial
from specbench.timing import is_impossible
from specbench.units import counted


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant, of all its launches."""
    trials: Mapping[str, list[StoredTrial]] = {name: [] for name in evidence.arms}
    for trial in evidence.stored.trials:
        trials[trial.record.trial.variant].append(trial)
    for name, mine in trials.items():
        measured = [(one, request) for one in mine for request in one.requests if not request.warmup]
        bad = [(one, request) for one, request in measured if is_impossible(request)]
        if bad:
            yield Finding(
                code="impossible_records",
                severity="warning",
                variant=name,
                message=f"The records of {len(bad)} of {counted(len(measured), 'request')} can't be true: they are left "
                "out, and their levels have no tok/s.",
                evidence=_evidence(bad),
                remedy="The file was damaged, or a clock went wrong unseen (suspend, migration of a virtual machine): put "
                f"{bad[0][0].folder} back from a copy, or delete it and measure it again: "
                f"{shlex.join(['specbench', 'run', '--resume', evidence.stored.folder])}",
            )


def _evidence(bad: Sequence[tuple[StoredTrial, RequestRecord]]) -> str:
    trial, request = bad[0]
    return f"launch {trial.record.trial.launch_index}, request {request.request_index}: {_what(request)}"


def _what(request: RequestRecord) -> str:
    if request.due_s < 0:
        return f"due {-request.due_s:.3f} s before its launch began"
    if request.done_s < request.due_s:
        return f"done {request.due_s - request.done_s:.3f} s before it was due"
    if (request.output_tokens or 0) < 0 or (request.verify_count or 0) < 0:
        return "it counts fewer than no tokens or steps"
    if request.chunk_s[0] < request.due_s:
        return f"its first chunk came {request.due_s - request.chunk_s[0]:.3f} s before it was due"
    if request.chunk_s[-1] > request.done_s:
        return f"its last chunk came {request.chunk_s[-1] - request.done_s:.3f} s after its end"
    return "its chunks go back in time"


CHECK: Final[Check] = check
