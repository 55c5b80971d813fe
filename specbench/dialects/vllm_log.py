"""vLLM's log, V0 and V1, line by line. `parse_line` never raises and gives no number that is not in the line.

V1 prints an interval's counts (`SpecDecoding metrics`), V0 totals since launch (`Speculative metrics`) in which matches
after a rejection are counted too, so that only its emitted tokens give a length.
"""

import math
import re
from typing import Any

from specbench.dialects import DecodeSample, LineKind, LogLine
from specbench.dialects.lines import SEAM, bare, uncollected
from specbench.dialects.vllm_causes import cause_code, is_fault
from specbench.dialects.vllm_events import event

STAMP = re.compile(
    r"(?P<before>[^'\"]{0,200}?)\b"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<ts>\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?) "
    r"\[?(?P<file>[\w./-]+\.py):\d+\](?: |$)"
)
"""`INFO 05-08 10:14:20 [metrics.py:103] ` (V1) or `… metrics.py:351] ` (V0)."""
PROCESS = re.compile(r"\((?P<name>[A-Za-z][\w-]*?)(?:_DP(?P<dp>\d+))?(?:_TP(?P<tp>\d+))?(?: (?:pid|ip)=[^()]*)?\) ?")
CLOCK = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: \|)? ?(?:std(?:out|err) [FP] )?"
)
ENGINE = re.compile(r"(?:Engine (?P<index>\d{1,6}): )?(?=Avg prompt throughput: )")
SPEC = re.compile(r"(?:Engine (?P<index>\d{1,6}): )?(?P<kind>SpecDecoding|Speculative) metrics: ")
NUMBER = re.compile(r"(-?\d{1,15}(?:\.\d{1,15})?)(?: tokens/s| tokens| reqs|%)?\.?$")
WHOLE = re.compile(r"(?:%|tokens|tokens/s|reqs|\d\.\d{3}|emitted tokens: \d+\.)[.,]?$")
"""How a whole line ends: with a unit, a rate of three decimals or a full stop; a cut number shows none."""
FIGURES = re.compile(r"acceptance length|acceptance rate|Avg generation throughput|[Ss]pec\w* metrics", re.I)

SPEC_NAMES = {
    "Mean acceptance length": "accept_length",
    "Accepted throughput": "accepted_tps",
    "Drafted throughput": "drafted_tps",
    "Accepted": "accepted",
    "Drafted": "drafted",
    "Drafts": "drafts",
    "Avg Draft acceptance rate": "accept_rate",
    "Draft acceptance rate": "accept_rate",
    "System efficiency": "system_efficiency",
    "Number of speculative tokens": "k",
    "Number of accepted tokens": "accepted",
    "Number of draft tokens": "drafted",
    "Number of emitted tokens": "emitted",
}
ENGINE_NAMES = {
    "Avg prompt throughput": "prompt_throughput_tps",
    "Avg generation throughput": "gen_throughput_tps",
    "Running": "running_requests",
    "Waiting": "queue_requests",
    "Pending": "queue_requests",
    "Swapped": "swapped_requests",
    "Prefix cache hit rate": "prefix_cache_hit_percent",
}
POSITIONS = "Per-position acceptance rate"
COUNTS = ("accepted", "drafted", "drafts", "emitted", "k", "running_requests", "queue_requests", "swapped_requests")


def parse_line(line: str) -> LogLine:
    """One line. A line without a vLLM stamp is never a sample: it may be a prompt's own text."""
    try:
        return _parse(line)
    except (ValueError, OverflowError, RecursionError):  # a number no float can hold
        return LogLine(kind="unrecognised", text=line[:400])


def strip(line: str) -> tuple[str, str | None, dict[str, int] | None]:
    """The message, the server's own clock, the ranks; colours, collectors' clocks and process names taken off."""
    text = bare(line).replace(SEAM, "")
    if (found := STAMP.match(text)) is None and (found := STAMP.match(uncollected(text))) is not None:
        text = found.string
    if found is not None:
        return text[found.end() :].strip(), found["ts"], _ranks(found["before"])
    before = text
    while (prefix := CLOCK.match(text) or PROCESS.match(text)) is not None and prefix.end():
        text = text[prefix.end() :]
    return text.strip(), None, _ranks(before[: len(before) - len(text)])


def _ranks(before: str) -> dict[str, int] | None:
    found = PROCESS.search(before)
    if found is None:
        return None
    return {name: int(found[name]) for name in ("dp", "tp") if found[name]} or None


def _parse(line: str) -> LogLine:
    text, ts, rank = strip(line)
    if ts is None:
        return _unstamped(text, rank)
    spec, engine = SPEC.match(text), ENGINE.match(text)
    if spec is not None:
        return _spec(text, spec, ts, rank)
    if engine is not None:
        return _engine(text, engine, ts, rank)
    if any(len(text) > 3 and head.startswith(text) for head in ("SpecDecoding metrics: ", "Speculative metrics: ")):
        return LogLine(kind="partial", ts=ts, text=text, rank=rank)
    if is_fault(line) and (code := cause_code(text)):
        return LogLine(kind="fatal", ts=ts, name=code, text=text, rank=rank)
    known = event(text)
    if known is not None:
        return LogLine(kind=known.kind, ts=ts, name=known.name, value=known.value, text=text, rank=rank)
    kind: LineKind = (
        "unrecognised" if FIGURES.search(text[:200]) and not text.startswith(("Received", "Prefix")) else "known"
    )
    return LogLine(kind=kind, ts=ts, text=text, rank=rank)


def _unstamped(text: str, rank: dict[str, int] | None) -> LogLine:
    known = event(text)
    if known is not None:
        return LogLine(kind=known.kind, name=known.name, value=known.value, text=text, rank=rank)
    code = cause_code(text) if is_fault(text) else None
    return LogLine(kind="fatal" if code else "noise", name=code or "", text=text, rank=rank)


def _spec(text: str, found: re.Match[str], ts: str, rank: dict[str, int] | None) -> LogLine:
    values, whole = pairs(text[found.end() :], SPEC_NAMES)
    first = found["kind"] == "Speculative"
    needed = ("accepted", "drafted", "emitted", "k") if first else ("accepted", "drafted")
    if found["index"]:
        rank = {**(rank or {}), "dp": int(found["index"])}
    cut = not whole or any(name not in values for name in needed)
    if cut or (not first and "accept_length" in values and "accept_rate" not in values):
        return LogLine(kind="partial", ts=ts, text=text, rank=rank)
    length = values.pop("accept_length", None)
    if first:
        values["cumulative"] = True
        steps = values["drafted"] / values["k"] if values["k"] else 0
        length = values["emitted"] / steps if steps else None
    sample = DecodeSample(ts=ts, rank=rank, accept_length=length, accept_rate=values.pop("accept_rate", None), extra=values)
    return LogLine(kind="decode", ts=ts, sample=sample, name="spec", text=text, rank=rank)


def _engine(text: str, found: re.Match[str], ts: str, rank: dict[str, int] | None) -> LogLine:
    values, whole = pairs(text[found.end() :], ENGINE_NAMES)
    if found["index"]:
        rank = {**(rank or {}), "dp": int(found["index"])}
    if not whole or "running_requests" not in values or "gen_throughput_tps" not in values:
        return LogLine(kind="partial", ts=ts, text=text, rank=rank)
    return LogLine(kind="known", ts=ts, name="engine", value=values, text=text, rank=rank)


def pairs(text: str, names: dict[str, str]) -> tuple[dict[str, Any], bool]:
    """Known values by neutral name, and whether the text is whole. Unknown keys are passed over."""
    values: dict[str, Any] = {}
    positions: list[float] | None = None
    whole = WHOLE.search(text.strip()) is not None
    for piece in text.strip().rstrip(",").split(", "):
        key, colon, word = piece.rpartition(": ")
        number = _number(word if colon else piece)
        inside = positions is not None and not colon
        if key == POSITIONS:
            positions = [] if number is None else [number]
        elif inside and positions is not None and number is not None:
            positions.append(number)
        elif colon and (name := names.get(key)) is not None and number is not None:
            values[name] = int(number) if name in COUNTS and number == int(number) else number
    if positions:
        values["per_position"] = positions
    return values, whole


def _number(word: str) -> float | None:
    found = NUMBER.match(word.strip())
    if found is None:
        return None
    number = float(found.group(1))
    return number if math.isfinite(number) else None
