"""Prompts that were served from the cache although each was sent once."""

from collections.abc import Iterable, Iterator
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Arm, Load
from specbench.analysis.checks import Check, Evidence
from specbench.records import RequestRecord

SHARED_PREFIX_RATIO: Final = 0.3
"""A chat template and a system prompt that all prompts share reach about this."""


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant. Later turns and repeated prompts hit the cache by nature and are left out."""
    for name, arm in evidence.arms.items():
        requests = list(_first_sends(arm))
        prompt_tokens = sum(request.prompt_tokens or 0 for request in requests)
        cached_tokens = sum(request.cached_tokens or 0 for request in requests)
        if prompt_tokens and cached_tokens / prompt_tokens > SHARED_PREFIX_RATIO:
            yield Finding(
                code="prompt_cache_hits",
                severity="warning",
                variant=name,
                message="Prompts that were sent once came from the prefix cache: TTFT and tok/s are flattered.",
                evidence=f"{cached_tokens} of {prompt_tokens} prompt tokens were cached",
                remedy="Check that the cache is flushed between levels (`flushed` in manifest.json), or switch it off in "
                "every arm.",
            )


def _first_sends(arm: Arm) -> Iterator[RequestRecord]:
    for cell in arm.cells.values():
        for load in cell.loads:
            yield from _sent_once(load)


def _sent_once(load: Load) -> Iterator[RequestRecord]:
    seen: set[str] = set()
    for request in sorted(load.requests, key=lambda one: one.request_index):
        if request.turn_index == 0 and request.prompt_id not in seen and request.cached_tokens is not None:
            yield request
        seen.add(request.prompt_id)


CHECK: Final[Check] = check
