"""`/metrics`: Prometheus' text, reduced to what concerns speculation and tokens."""

import re
from collections.abc import Mapping
from typing import Final

SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)(\{[^}]*\})? +(\S+)(?: +\d+)?$")
WANTED: Final = re.compile(r"spec_|accept|generation_tokens|tokens_predicted_total|num_running_req|num_requests_running")
DRAFTS: Final = "spec_decode_num_drafts_total"
ACCEPTED: Final = "spec_decode_num_accepted_tokens_total"
GAUGE: Final = "spec_accept_length"
LARGEST_COUNT: Final = 4096
"""Lines kept: a server with many labels is cut here."""


def parse_metrics(text: str) -> dict[str, float]:
    """Value by name with its labels. Never raises; what is no number, or not wanted, is left out."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        sample = SAMPLE.match(line)
        if sample is None or not WANTED.search(sample[1]) or len(found) >= LARGEST_COUNT:
            continue
        try:
            value = float(sample[3])
        except ValueError:
            continue
        if value == value and abs(value) != float("inf"):
            found[sample[1] + (sample[2] or "")] = value
    return found


def accept_length_between(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """1 + Δ accepted / Δ drafts by the counters of vLLM and llama.cpp, all their labels together; None without any."""
    drafts, accepted = (_total(after, name) - _total(before, name) for name in (DRAFTS, ACCEPTED))
    return 1 + accepted / drafts if drafts > 0 and accepted >= 0 else None


def gauged_accept_length(after: Mapping[str, float]) -> float | None:
    """SGLang's gauge: of the last decode log interval, or stale. None without one, or with several that differ."""
    values = {value for name, value in after.items() if name.partition("{")[0].endswith(GAUGE) and value > 0}
    return values.pop() if len(values) == 1 else None


def _total(values: Mapping[str, float], name: str) -> float:
    return sum(value for key, value in values.items() if key.partition("{")[0].endswith(name))
