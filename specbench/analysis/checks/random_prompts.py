"""Workloads of random words."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """Once for the run, where a variant speculates."""
    odd = [one.name for one in evidence.suite.workloads if one.dataset == "random"]
    if odd and any(arm.variant.speculation for arm in evidence.arms.values()):
        yield Finding(
            code="random_prompts",
            severity="warning",
            message=f"ACCEPTANCE ON RANDOM TEXT MEANS NOTHING: {', '.join(odd)} has prompts of random words, and neither "
            "acceptance length nor speed-up there says anything about real use.",
            evidence="dataset: random",
            remedy="Use `builtin`, `jsonl` or a published set; keep random words for load and memory tests.",
        )


CHECK: Final[Check] = check
