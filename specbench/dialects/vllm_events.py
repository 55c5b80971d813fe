"""vLLM's other lines: start-up phases, settings, and noise."""

import re
from typing import Any, Final, NamedTuple

from specbench.dialects import LineKind
from specbench.dialects.messages import Event


class Shape(NamedTuple):
    """A message known by its beginning. Named groups become values."""

    kind: LineKind
    name: str
    pattern: re.Pattern[str]


def _shape(kind: LineKind, name: str, pattern: str) -> Shape:
    return Shape(kind, name, re.compile(pattern))


SECONDS = r"(?P<elapsed_s>\d{1,9}(?:\.\d{1,9})?)"
SHAPES = (
    _shape("noise", "access", r'INFO: +\S+ - "'),
    _shape("noise", "progress", r"[^\[]{0,120}\d{1,3}%(?:\|| Completed)"),
    _shape("known", "request_echo", r"Received request |Added request |Generated response |Streaming response "),
    _shape("ready", "ready", r"(?:INFO: +)?Application startup complete"),
    _shape("phase", "http", r"(?:INFO: +)?(?:Started server process|Uvicorn running on|Starting vLLM (?:API )?server)"),
    _shape("known", "arguments", r"non-default args: |args: Namespace\("),
    _shape("known", "configuration", r"Initializing an? (?:V1 )?LLM engine"),
    _shape("phase", "weights", rf"Loading (?:model )?weights took {SECONDS}"),
    _shape("phase", "weights", rf"Model loading took .*? and {SECONDS} s"),
    _shape("phase", "weights", r"Starting to load model "),
    _shape("phase", "drafter", r"Loading drafter model"),
    _shape("phase", "compile", rf"torch\.compile takes {SECONDS} s in total"),
    _shape("phase", "kv_cache", r"(?:GPU|CPU) KV cache size: (?P<tokens>[\d,]{1,20}) tokens"),
    _shape("phase", "graph_capture", rf"Graph capturing finished in {SECONDS} secs"),
    _shape("phase", "engine", rf"init engine \([^)]*\) took {SECONDS} s"),
    _shape("warning", "eager", r"Enforce eager set|CUDA graph is not supported|Cudagraph is disabled|enforce_eager is set"),
    _shape(
        "warning",
        "speculation_disabled",
        r"(?:Speculative decoding|Spec(?:ulative)? decode) .{0,60}(?:disabled|not supported)",
    ),
    _shape("known", "shutdown", r"\[shutdown\] |(?:INFO: +)?Shutting down"),
    _shape("noise", "traceback", r'File "|Traceback \(most recent call last\)'),
)
VERSION = re.compile(r"(?:\bversion |LLM engine \(v|vLLM API server version )v?(\d+\.\d+(?:\.\d+)?[\w.+]*)")
SPECULATIVE = re.compile(r"speculative_config'?[=:] *(?:\{|SpeculativeConfig\()([^})]*)[})]")
PAIR = re.compile(r"'?(\w+)'?[=:] *('[^']*'|-?[\d.]+|None|True|False)")
EAGER = re.compile(r"'?enforce_eager'?[=:] *True")


def event(text: str) -> Event | None:
    """None when no shape fits: it may be anything."""
    if not text:
        return Event("noise", "blank", {})
    found_version = VERSION.search(text[:300])
    for shape in SHAPES:
        found = shape.pattern.match(text)
        if found is not None:
            values: dict[str, Any] = {name: _number(word) for name, word in found.groupdict().items() if word}
            if found_version:
                values["version"] = found_version.group(1)
            if shape.name in ("arguments", "configuration"):
                values.update(settings(text))
            return Event(shape.kind, shape.name, values)
    return Event("known", "version", {"version": found_version.group(1)}) if found_version else None


LIMIT: Final = "disable_by_batch_size"
"""Requests in flight from which on nothing is drafted, where it is stated."""


def settings(text: str) -> dict[str, Any]:
    """`method`, `drafter`, `k`, `eager` as a configuration line states them; `speculation` False where it says None."""
    values: dict[str, Any] = {}
    found = SPECULATIVE.search(text)
    if found is not None:
        said = {name: word.strip("'") for name, word in PAIR.findall(found.group(1)) if word != "None"}
        k = said.get("num_speculative_tokens") or said.get("num_spec_tokens") or ""
        values["speculation"] = True
        values.update({name: said[key] for name, key in (("method", "method"), ("drafter", "model")) if key in said})
        values.update({name: int(word) for name, word in (("k", k), (LIMIT, said.get(LIMIT, ""))) if word.isdigit()})
    elif re.search(r"speculative_config'?[=:] *None", text):
        values["speculation"] = False
    if EAGER.search(text):
        values["eager"] = True
    return values


def _number(word: str) -> float | int:
    plain = word.replace(",", "")
    return float(plain) if "." in plain else int(plain)
