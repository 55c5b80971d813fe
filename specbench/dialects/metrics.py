"""`/metrics`: Prometheus' text, reduced to what concerns speculation and tokens."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)(\{[^}]*\})? +(\S+)(?: +\d+)?$")
WANTED: Final = re.compile(r"spec_|accept|generation_tokens|tokens_predicted_total|num_running_req|num_requests_running")
DRAFTS: Final = "spec_decode_num_drafts_total"
ACCEPTED: Final = "spec_decode_num_accepted_tokens_total"
PROPOSED: Final = "spec_decode_num_draft_tokens_total"
POSITIONS: Final = "spec_decode_num_accepted_tokens_per_pos_total"
POSITION: Final = re.compile(r'position="(\d{1,4})"')
OUTPUT: Final = ("generation_tokens_total", "tokens_predicted_total")
GAUGE: Final = "spec_accept_length"
COUNTING: Final = ("vllm:", "llamacpp:")
LARGEST_COUNT: Final = 4096
"""Lines kept: a server with many labels is cut here."""


class Counted(Struct, frozen=True, kw_only=True):
    """What the counters of vLLM and llama.cpp grew by, all their labels together."""

    draft_count: int
    """Steps that drafted."""
    accepted_tokens: int
    proposed_tokens: int
    output_tokens: int | None
    """None where the server does not count them."""
    position_tokens: tuple[int, ...]
    """Accepted at the first, second, … draft position; empty where the server does not count them."""


def counted_between(before: Mapping[str, float], after: Mapping[str, float]) -> Counted | None:
    """None without such counters, or when they fell: the server was started anew."""
    if not any(_named(name, DRAFTS) for name in after):
        return None
    grown = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {*before, *after}}
    drafts, accepted, proposed = (round(_total(grown, name)) for name in (DRAFTS, ACCEPTED, PROPOSED))
    positions: dict[int, float] = {}
    for name, value in grown.items():
        if _named(name, POSITIONS) and (found := POSITION.search(name)) is not None:
            positions[int(found[1])] = positions.get(int(found[1]), 0.0) + value
    output = next((name for name in OUTPUT if any(_named(key, name) for key in grown)), None)
    if min(drafts, accepted, proposed, *positions.values()) < 0:
        return None
    return Counted(
        draft_count=drafts,
        accepted_tokens=accepted,
        proposed_tokens=proposed,
        output_tokens=None if output is None else round(_total(grown, output)),
        position_tokens=tuple(round(positions[place]) for place in sorted(positions)),
    )


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


def counts_speculation(after: Mapping[str, float]) -> bool:
    """Whether the server is one that would count drafts here if it speculated."""
    return any(name.startswith(COUNTING) for name in after)


def gauged_accept_length(after: Mapping[str, float]) -> float | None:
    """SGLang's gauge: of the last decode log interval, or stale. None without one, or with several that differ."""
    values = {value for name, value in after.items() if name.partition("{")[0].endswith(GAUGE) and value > 0}
    return values.pop() if len(values) == 1 else None


def _total(values: Mapping[str, float], name: str) -> float:
    return sum(value for key, value in values.items() if _named(key, name))


def _named(key: str, name: str) -> bool:
    """Whatever stands before it: `vllm:`, `llamacpp:`."""
    return key.partition("{")[0].endswith(name)
