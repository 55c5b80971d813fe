"""A synthetic arm: what its figures are, and what they are not."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant."""
    for name, arm in evidence.arms.items():
        speculation = arm.variant.speculation
        if speculation is None or speculation.synthetic_length is None or not arm.launch_count:
            continue
        rows = [row for row in evidence.rows(name) if row.break_even_length is not None]
        yield Finding(
            code="synthetic",
            severity="note",
            variant=name,
            message=f"SYNTHETIC ACCEPTANCE: the server was told to accept {speculation.synthetic_length:g} tokens a step, "
            "right or wrong. Its text is no answer and its speed is nobody's; it is not ranked.",
            evidence="; ".join(
                f"{row.workload} at {row.concurrency}: break-even AL {row.break_even_length:.2f}" for row in rows
            )
            or "no level of the baseline to hold it against",
            remedy="Read its break-even AL beside the AL of a real drafter with as many draft tokens.",
        )


CHECK: Final[Check] = check
