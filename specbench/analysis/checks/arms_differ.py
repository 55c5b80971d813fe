"""What differs between an arm and the baseline besides the speculation itself, by the servers' own word."""

from collections.abc import Iterable
from typing import Any, Final

from specbench.analysis import Finding, parity
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant; silent where one of the two said nothing."""
    baseline = evidence.arms[evidence.suite.baseline]
    for name, arm in evidence.arms.items():
        differing = [
            f"{one.setting} {_words(one.variant_value)} (baseline {_words(one.baseline_value)})"
            for one in parity.differences(arm, baseline)
            if not one.asked
        ]
        if differing:
            yield Finding(
                code="arms_differ",
                severity="note",
                variant=name,
                message="The server resolved more than the speculation otherwise than the baseline's.",
                evidence="; ".join(differing),
                remedy="State these in `server.args` where they should be equal; a server gives up KV memory and batch "
                "for its drafter by itself.",
            )


def _words(value: Any) -> str:
    return "nothing" if value is None else str(value)


CHECK: Final[Check] = check
