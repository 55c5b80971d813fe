"""The first answer was drafted, and none after it."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.records import RequestRecord
from specbench.store import StoredTrial

FEWEST_LATER: Final = 3


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant. A prompt-lookup drafter may find nothing to copy, so it is not looked at."""
    for name, arm in evidence.arms.items():
        speculation = arm.variant.speculation
        if speculation is None or speculation.method == "prompt_lookup":
            continue
        for trial in (one for one in evidence.stored.trials if one.record.trial.variant == name):
            later = _undrafted(trial)
            if later:
                yield Finding(
                    code="no_drafts_after_first_request",
                    severity="error",
                    variant=name,
                    message=f"Drafts stopped after the first answer: {later} later ones have none.",
                    evidence=f"launch {trial.record.trial.launch_index}, by the counters of each answer",
                    remedy="Try a newer engine; a restart between two requests tells whether it is a fault of this version.",
                )
                break


def _undrafted(trial: StoredTrial) -> int:
    """Answers after the first; 0 unless the first alone was drafted. Warm-up answers count, too."""
    served = sorted((one for one in trial.requests if one.error is None and one.output_tokens), key=lambda one: one.sent_s)
    known = [drafted for one in served if (drafted := _was_drafted(one)) is not None]
    if len(known) <= FEWEST_LATER or not known[0] or any(known[1:]):
        return 0
    return len(known) - 1


def _was_drafted(request: RequestRecord) -> bool | None:
    """None where the server does not count."""
    counts = [count for count in (request.proposed_tokens, request.verify_count) if count is not None]
    return any(counts) if counts else None


CHECK: Final[Check] = check
