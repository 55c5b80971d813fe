"""SGLang's log, 0.4.2 to 0.5.23, line by line. `parse_line` never raises and gives no number that is not in the line."""

import math
import re

from specbench.dialects import DecodeSample, LineKind, LogLine
from specbench.dialects.lines import CUT_STAMP, OWN_STAMP, Stripped, strip
from specbench.dialects.sglang_events import event

Scalar = float | int | str | bool

HEAD = re.compile(r"(Decode|Prefill) batch(?:[.,]| \[(\d{1,12})\][.,]?)(?= |$)")
CUT_HEADS = ("Decode batch", "Prefill batch")
CUT_HEAD = re.compile(r"(?:Decode|Prefill) batch(?: \[\d*)?")
SHARED = re.compile(r'INFO: +\S+ - "|[^\[]*\d%\|')
"""An access line or a progress bar: no user's text, so a stamp inside is another process's."""
ECHO = re.compile(r"(?:Receive|Finish|Receive OpenAI|Receiving|Finished|Request)\b[^,]{0,40}?[:=]")
"""What `--log-requests` writes: any prompt's text may follow, also one that looks like a decode line."""
FIGURES = re.compile(
    r"throughput \(token/s\)|#running-req|accept[ _]len|accept[ _]rate|^(?:Decode|Prefill|Verify|Idle) (?:batch|step)", re.I
)
"""A line that seems to hold figures of batches."""

NAMES = {
    "#token": "used_tokens",
    "token usage": "token_usage_ratio",
    "#full token": "full_tokens",
    "full token usage": "full_token_usage_ratio",
    "#swa token": "swa_tokens",
    "swa token usage": "swa_token_usage_ratio",
    "mamba num": "mamba_count",
    "mamba usage": "mamba_usage_ratio",
    "#gpu token": "gpu_tokens",
    "gpu token usage": "gpu_token_usage_ratio",
    "#cpu token": "cpu_tokens",
    "cpu token usage": "cpu_token_usage_ratio",
    "accept len": "accept_length",
    "accept rate": "accept_rate",
    "cap len": "cap_length",
    "block accept len": "block_accept_length",
    "pre-allocated usage": "preallocated_usage_ratio",
    "#prealloc-req": "prealloc_requests",
    "#transfer-req": "transfer_requests",
    "#transferring-req": "transfer_requests",
    "#retracted-req": "retracted_requests",
    "#host-receive-req": "host_receive_requests",
    "#bootstrap-req": "bootstrap_requests",
    "#unbootstrapped-req": "bootstrap_requests",
    "#inflight-req": "inflight_requests",
    "#optimistic-req": "optimistic_requests",
    "waiting-image-req": "waiting_image_requests",
    "#running-req": "running_requests",
    "#queue-req": "queue_requests",
    "gen throughput (token/s)": "gen_throughput_tps",
    "input throughput (token/s)": "input_throughput_tps",
    "est. decode TFLOPS/s (per GPU)": "decode_tflops_per_s",
    "est. prefill TFLOPS/s (per GPU)": "prefill_tflops_per_s",
    "est. read BW (GB/s per GPU)": "read_gb_per_s",
    "est. write BW (GB/s per GPU)": "write_gb_per_s",
    "fwd occupancy": "fwd_occupancy_ratio",
    "fwd+idle occupancy": "fwd_idle_occupancy_ratio",
    "#new-seq": "new_requests",
    "#new-token": "new_tokens",
    "#cached-token": "cached_tokens",
    "#pending-token": "pending_tokens",
    "#replay-token": "replay_tokens",
    "cache hit rate": "cache_hit_ratio",
}
MANDATORY = {
    "decode": ("running_requests", "gen_throughput_tps", "queue_requests"),
    "prefill": ("new_requests", "cached_tokens", "queue_requests"),
}
OWN_FIELDS = (
    "running_requests",
    "queue_requests",
    "accept_length",
    "accept_rate",
    "gen_throughput_tps",
    "cuda_graph",
)
VALUE = re.compile(r"(-?\d{1,15})(\.\d{1,15})?(%)?")
TAIL = re.compile(r"(\d{1,15})(?=\s|\[|INFO|ERROR|WARNING)")
"""Whole number with another process's text directly behind it."""
TWO_DECIMALS = re.compile(r"_(?:ratio|tps|length|s)$|^accept_")
GRAPH = re.compile(r"([a-z]+) graph$")


def parse_line(line: str) -> LogLine:
    """One line. Where two processes wrote into it, `also` holds the other's message."""
    try:
        return _parse(line)
    except (ValueError, OverflowError, RecursionError):  # a number no float can hold
        return LogLine(kind="unrecognised", text=line[:400])


def _parse(line: str) -> LogLine:
    head = strip(line)
    if ECHO.match(head.message):
        return _line(head, "known", name="request_echo")
    parts = _split(head)
    read = [_message(part) for part in parts]
    first = next((one for one in read if one.kind == "decode"), read[0])
    others = tuple(one for one in read if one is not first)
    if not others:
        return first
    return LogLine(
        kind=first.kind,
        ts=first.ts,
        sample=first.sample,
        name=first.name,
        value=first.value,
        text=first.text,
        rank=first.rank,
        also=others,
    )


def _split(head: Stripped) -> list[Stripped]:
    """Cuts a line where another process's stamp begins inside it; never one that may hold a prompt's text."""
    if not (HEAD.match(head.message) or SHARED.match(head.message)):
        return [head]
    seam = OWN_STAMP.search(head.message)
    if seam is None:
        return [head]
    before = head._replace(message=head.message[: seam.start()].strip())
    return [before, *_split(strip(head.message[seam.start() :]))]


def _message(part: Stripped) -> LogLine:
    text = part.message
    found = HEAD.match(text)
    if found is not None and part.ts is not None:  # without a clock it may be a prompt's own text
        return _batch(part, found)
    if _cut_at_the_head(part):
        return _line(part, "partial")
    known = event(text)
    if known is not None:
        return _line(part, known.kind, known.name, known.value)
    if FIGURES.search(text):
        return _line(part, "partial" if _cut_at_the_front(part) else "unrecognised")
    return _line(part, "known" if part.stamped else "noise")


def _line(part: Stripped, kind: LineKind, name: str = "", value: dict[str, Scalar] | None = None) -> LogLine:
    return LogLine(kind=kind, ts=part.ts, name=name, value=value or {}, text=part.message, rank=part.rank)


def _cut_at_the_head(part: Stripped) -> bool:
    """`Deco`, or nothing but the beginning of a stamp."""
    text = part.message
    if CUT_STAMP.fullmatch(text):
        return len(text) > 5
    if part.ts is not None and CUT_HEAD.fullmatch(text):
        return True
    return part.ts is not None and len(text) > 1 and any(head.startswith(text) for head in CUT_HEADS)


def _cut_at_the_front(part: Stripped) -> bool:
    """The rest of a batch line whose beginning went to another line."""
    return part.ts is None and "#queue-req: " in part.message and " throughput (token/s): " in part.message


def _batch(part: Stripped, found: re.Match[str]) -> LogLine:
    kind: LineKind = "decode" if found.group(1) == "Decode" else "prefill"
    values, whole = _pairs(part.message[found.end() :])
    if found.group(2):
        values["forward_count"] = int(found.group(2))
    if not whole or any(name not in values for name in MANDATORY[kind]):
        return _line(part, "partial")
    if kind == "prefill":
        return _line(part, kind, "prefill", values)
    sample = _sample(part, values)
    return LogLine(kind=kind, ts=part.ts, sample=sample, name="decode", value=values, text=part.message, rank=part.rank)


def _sample(part: Stripped, values: dict[str, Scalar]) -> DecodeSample:
    graph = values.get("cuda_graph")
    return DecodeSample(
        ts=part.ts,
        rank=part.rank,
        running_requests=_whole(values.get("running_requests")),
        queue_requests=_whole(values.get("queue_requests")),
        accept_length=_float(values.get("accept_length")),
        accept_rate=_float(values.get("accept_rate")),
        gen_throughput_tps=_float(values.get("gen_throughput_tps")),
        cuda_graph=graph if isinstance(graph, bool) else None,
        extra={name: value for name, value in values.items() if name not in OWN_FIELDS},
    )


def _pairs(text: str) -> tuple[dict[str, Scalar], bool]:
    """The `key: value` pairs behind the head, and whether the line is whole. Pieces that are no pair are left out
    (a drafter's free text), but not at the end, and no key may come twice: that is one line inside another."""
    *body, last = [piece.strip() for piece in text.strip().rstrip(",").split(", ")]
    values: dict[str, Scalar] = {}
    for piece in body:
        if not _put(values, piece) or any(head in piece for head in CUT_HEADS):
            return values, False
    count = len(values)
    key, _, word = last.partition(": ")
    whole = _put(values, last) and len(values) > count and not _cut_value(_name(key), word.strip())
    return values, whole


def _put(values: dict[str, Scalar], piece: str) -> bool:
    """Adds a pair, if it is one. False when its key is there already."""
    key, colon, word = piece.partition(": ")
    name = _name(key)
    if name in values:
        return False
    value = _value(word.strip(), name) if colon and name else None
    if value is None:
        return True
    graph = GRAPH.fullmatch(key)
    if graph:
        values["graph_kind"] = graph.group(1)
    values[name] = value
    return True


def _name(key: str) -> str:
    if GRAPH.fullmatch(key):
        return "cuda_graph"
    return NAMES.get(key) or re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")


def _value(word: str, name: str) -> Scalar | None:
    """None when it is no value. Percentages become ratios, by their own digits."""
    if word in ("True", "False"):
        return word == "True"
    if word in ("nan", "nan%", "inf", "-inf"):
        return "nan"
    found = VALUE.fullmatch(word)
    if found is None and name == "queue_requests":
        found = TAIL.match(word)
        return int(found.group(1)) if found else None
    if found is None:
        return None
    if found.group(3):
        return round(float(found.group(1) + (found.group(2) or "")) / 100, 12)
    return float(word) if found.group(2) else int(word)


def _cut_value(name: str, word: str) -> bool:
    """The last value of a line, when it lacks decimals or a percent sign that are always printed."""
    if word == "nan" or name in ("queue_requests", "cuda_graph"):
        return False
    if name.endswith("occupancy_ratio"):
        return not word.endswith("%")
    return name in NAMES.values() and bool(TWO_DECIMALS.search(name)) and not re.search(r"\.\d\d%?$", word)


def _whole(value: Scalar | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: Scalar | None) -> float | None:
    """A finite number, or None for `nan`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
