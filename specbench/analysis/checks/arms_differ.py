"""What differs between an arm and the baseline besides the speculation itself, by the servers' own word."""

from collections.abc import Iterable
from typing import Any, Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence

OF_SPECULATION: Final = ("algorithm", "draft_tokens", "steps", "topk", "draft_model_path", "ngram", "speculation")
"""Resolved facts that are meant to differ."""
EXPECTED: Final = ("decode_log_interval", "version_commit")


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant; silent where one of the two said nothing."""
    baseline = evidence.arms[evidence.suite.baseline].resolved
    for name, arm in evidence.arms.items():
        if name == evidence.suite.baseline or not arm.resolved or not baseline:
            continue
        wanted = {"cuda_graph"} if arm.variant.cuda_graph is not None else set()
        keys = sorted(set(baseline) | set(arm.resolved))
        differing = [
            f"{key} {_words(arm.resolved.get(key))} (baseline {_words(baseline.get(key))})"
            for key in keys
            if key not in OF_SPECULATION + EXPECTED
            and key not in wanted
            and not key.startswith(("spec", "draft"))
            and arm.resolved.get(key) != baseline.get(key)
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
