"""No draft token is ever accepted."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Arm
from specbench.analysis.checks import Check, Evidence
from specbench.suite import Drafter
from specbench.units import counted, span

WRONG_WORD = (
    "Under EAGLE the server hands the drafter one hidden state, where an EAGLE-3 drafter's fc wants three of them side "
    "by side (3 × 7168 for Kimi-K2.5): it loads without an error and drafts noise."
)


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name, codes in evidence.codes.items():
        if "dead_drafter" not in codes:
            continue
        arm = evidence.arms[name]
        lengths = [row.accept_length for row in evidence.rows(name) if row.accept_length is not None]
        yield Finding(
            code="dead_drafter",
            severity="error",
            variant=name,
            message=_message(arm, evidence.suite.drafter_of(arm.variant)),
            evidence=f"AL {span(f'{min(lengths):.2f}', f'{max(lengths):.2f}')} in {counted(len(lengths), 'level')}; "
            "1.00 is nothing accepted",
            remedy=_remedy(arm, evidence.suite.drafter_of(arm.variant)),
        )


def _message(arm: Arm, drafter: Drafter | None) -> str:
    text = "The drafter's tokens are never accepted: every draft and its check is time lost."
    return f"{text} {WRONG_WORD}" if wrong_word(arm, drafter) else text


def _remedy(arm: Arm, drafter: Drafter | None) -> str:
    if wrong_word(arm, drafter):
        return "Launch with --speculative-algorithm EAGLE3 (in the suite: `method: eagle3`), and run this variant again."
    speculation = arm.variant.speculation
    if speculation is not None and speculation.method == "draft_model":
        return "Check that drafter and target share one tokenizer, and that the drafter says something sensible by itself."
    return (
        "Check that the drafter was trained for this target and vocabulary, that its checkpoint holds lm_head and fc, "
        "and that the speculation method is the one it was trained as."
    )


def wrong_word(arm: Arm, drafter: Drafter | None) -> bool:
    """Launched as EAGLE although the drafter says EAGLE-3, by its stated method or its name."""
    speculation = arm.variant.speculation
    if speculation is None or speculation.method != "eagle" or drafter is None:
        return False
    named = f"{speculation.drafter} {drafter.path}".lower().replace("-", "").replace("_", "")
    return drafter.method == "eagle3" or "eagle3" in named


CHECK: Final[Check] = check
