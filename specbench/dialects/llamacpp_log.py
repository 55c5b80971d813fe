"""llama.cpp's log: the server's blocks per request, old and new, running totals, and the block of llama-speculative.

A record may span lines: `LlamaLog` holds what the lines before said. It never raises and gives no number that is not in
the lines of the record.
"""

import re
from typing import Any

from specbench.dialects import DecodeSample, LogLine
from specbench.dialects.lines import uncollected
from specbench.dialects.llamacpp_events import event

COLLECTOR = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: \||:)? ?")
"""A clock that is not the server's own."""
STAMP = re.compile(r"(?P<ts>\d{1,6}\.\d\d\.\d{3}\.\d{3}) (?P<level>[A-Z]) ")
OWN_HEAD = r"\d{1,6}\.\d\d\.\d{3}\.\d{3} [A-Z] |slot +[\w.()]+: +id +\d"
OTHER_HEAD = r"(?:prompt )?eval time = |draft acceptance(?: rate)? = |statistics +[\w.+-]+: #"
HEAD = re.compile(rf"{OWN_HEAD}|{OTHER_HEAD}")
ANY_PREFIX = re.compile(
    rf"[^'\"=({{\[]{{1,80}}?(?=(?:{OWN_HEAD}))"
    rf"|(?!.{{0,80}}\b(?:llama|common|ggml)_\w*: )[^'\"=({{\[]{{0,79}}?[:|\]>\t] *(?={OTHER_HEAD})"
)
"""Whatever a collector writes before, without the marks that stand before a prompt's text."""
SLOT = re.compile(r"slot +(?P<name>[\w.()]+): +id +(?P<slot>\d{1,9}) \| task +(?P<task>-?\d{1,12}) \| ?")
PROMPT = re.compile(r"prompt eval time = +(?P<ms>[\d.]+) ms / +(?P<tokens>\d{1,12}) tokens")
EVAL = re.compile(
    r"eval time = +(?P<ms>[\d.]+) ms / +(?P<tokens>\d{1,12}) (?:tokens|runs) +\("
    r" *[\d.]+ ms per token, +(?P<tps>[\d.]+) tokens per second\)"
)
ACCEPT = re.compile(
    r"draft acceptance(?: rate)? = +(?P<rate>\d{1,9}(?:\.\d{1,9})?|-?nan) \("
    r" *(?P<accepted>\d{1,12}) accepted / +(?P<drafted>\d{1,12}) generated\)"
    r"(?:, mean (?:len|acceptance length) = +(?P<length>\d{1,9}(?:\.\d{1,9})?|-?nan))?(?P<rest>.*)$"
)
POSITIONS = re.compile(r"(?:acceptance rate per position|acc rate/pos|#acc rate/pos) = \((?P<rates>[\d., ]*)\)")
STATISTICS = re.compile(r"statistics +(?P<impl>[\w.+-]+): (?P<rest>#.*)$")
TOTALS = {"#gen drafts": "drafts", "#acc drafts": "accepted_drafts", "#gen tokens": "drafted", "#acc tokens": "accepted"}
TOTAL = re.compile(r"(#gen drafts|#acc drafts|#gen tokens|#acc tokens) = +(\d{1,15})(?=,)")
TOOL = re.compile(
    r"(?P<name>n_draft|n_predict|n_drafted|n_accept|accept) += +(?P<value>\d{1,12}(?:\.\d{1,9})?)(?P<percent>%?)$"
)
DECODED = re.compile(r"decoded +(?P<tokens>\d{1,12}) tokens in +[\d.]+ seconds, speed: +(?P<tps>[\d.]+) t/s$")
CUT = re.compile(r"(?:draft acceptance(?: rate)? =|statistics +[\w.+-]+: #|n_accept +=|accept +=)")
FIGURES = re.compile(r"accept(?:ance|ed)?\b.{0,40}\d|#gen tokens|#acc tokens|n_drafted", re.I)
OPEN_BLOCKS = 512
"""Requests whose timing was seen and whose end was not; older ones are forgotten."""


class LlamaLog:
    """Reads a log from its first line on."""

    def __init__(self) -> None:
        self._timing: dict[tuple[int, int], dict[str, Any]] = {}
        self._open: tuple[int, int] | None = None
        self._tool: dict[str, Any] = {}
        self._tool_lines: list[int] = []
        self._number = 0

    def parse_line(self, line: str) -> LogLine:
        """The next line."""
        self._number += 1
        try:
            return self._parse(line)
        except (ValueError, OverflowError, RecursionError):  # a number no float can hold
            return LogLine(kind="unrecognised", text=line[:400])

    def _parse(self, line: str) -> LogLine:
        text, ts = strip(line)
        found = SLOT.match(text)
        key = self._open if found is None else (int(found["slot"]), int(found["task"]))
        if found is not None:
            text = text[found.end() :].strip()
            self._open = key if found["name"] == "print_timing" else self._open
            if found["name"] == "launch_slot_" and key is not None:
                self._timing.pop(key, None)  # old builds print two heads of print_timing: of the times, of the drafts
        elif ts is not None:
            self._open = None
        named = key if key is not None else (-1, -1)
        return self._timed(text, ts, named) or self._totals(text, ts) or self._tool_line(text) or _other(text, ts)

    def _timed(self, text: str, ts: str | None, key: tuple[int, int]) -> LogLine | None:
        """A line of a request's `print_timing`."""
        found = ACCEPT.match(text)
        if found is not None:
            return self._sample(found, text, ts, key)
        prompt, done = PROMPT.match(text), EVAL.match(text)
        if done is not None:
            value = {"output_tokens": int(done["tokens"]), "gen_throughput_tps": float(done["tps"])}
            while len(self._timing) >= OPEN_BLOCKS:
                self._timing.pop(next(iter(self._timing)))
            self._timing[key] = value
            value = {**value, "elapsed_s": float(done["ms"]) / 1000}
            return LogLine(kind="known", ts=ts, name="request", value=value | _named(key), text=text)
        if prompt is not None:
            return LogLine(kind="prefill", ts=ts, name="prefill", value={"new_tokens": int(prompt["tokens"])}, text=text)
        return None

    def _sample(self, found: re.Match[str], text: str, ts: str | None, key: tuple[int, int]) -> LogLine:
        rest = found["rest"]
        rates = POSITIONS.search(rest)
        if rest.strip(", ") and rates is None:
            return LogLine(kind="partial", ts=ts, text=text)
        timing = self._timing.pop(key, {})
        extra: dict[str, Any] = {"accepted": int(found["accepted"]), "drafted": int(found["drafted"]), **_named(key)}
        if rates is not None:
            extra["per_position"] = [float(word) for word in rates["rates"].split(",") if word.strip()]
        if "output_tokens" in timing:
            extra["output_tokens"] = timing["output_tokens"]
        sample = DecodeSample(
            ts=ts,
            accept_length=_float(found["length"]),
            accept_rate=_float(found["rate"]),
            gen_throughput_tps=timing.get("gen_throughput_tps"),
            extra=extra,
        )
        return LogLine(kind="decode", ts=ts, sample=sample, name="request", text=text)

    def _totals(self, text: str, ts: str | None) -> LogLine | None:
        """Running totals of one way to draft since the server's start."""
        found = STATISTICS.match(text)
        if found is None:
            return None
        value: dict[str, Any] = {TOTALS[name]: int(word) for name, word in TOTAL.findall(found["rest"] + ",")}
        if not {"drafts", "drafted", "accepted"} <= set(value) or "dur(" not in text or not text.endswith("ms"):
            return LogLine(kind="partial", ts=ts, text=text)
        value["impl"] = found["impl"]
        return LogLine(kind="known", ts=ts, name="statistics", value=value, text=text)

    def _tool_line(self, text: str) -> LogLine | None:
        """A line of llama-speculative's block; its last one, `accept`, makes the sample."""
        decoded, found = DECODED.match(text), TOOL.match(text)
        if decoded is not None:
            self._tool = {"gen_throughput_tps": float(decoded["tps"]), "output_tokens": int(decoded["tokens"])}
            self._tool_lines = [self._number]
            return LogLine(kind="known", name="decoded", text=text)
        if found is None or (found["name"] == "accept") != bool(found["percent"]):
            return None
        self._tool[found["name"]] = float(found["value"]) if found["percent"] else int(found["value"])
        self._tool_lines.append(self._number)
        if found["name"] != "accept":
            return LogLine(kind="noise", name="tool_block", text=text)
        values, lines = self._tool, self._tool_lines
        self._tool, self._tool_lines = {}, []
        return _tool_sample(values, lines, text)


def _tool_sample(values: dict[str, Any], lines: list[int], text: str) -> LogLine:
    if not {"n_predict", "n_drafted", "n_accept"} <= set(values):
        return LogLine(kind="partial", text=text)
    extra: dict[str, Any] = {
        "accepted": values["n_accept"],
        "drafted": values["n_drafted"],
        "output_tokens": values["n_predict"],
    }
    if "n_draft" in values:
        extra["k"] = values["n_draft"]
    extra["lines"] = lines
    sample = DecodeSample(accept_rate=values["accept"], gen_throughput_tps=values.get("gen_throughput_tps"), extra=extra)
    return LogLine(kind="decode", sample=sample, name="tool", text=text)


def strip(line: str) -> tuple[str, str | None]:
    """The message and the server's own clock (minutes.seconds.milliseconds.microseconds since its start)."""
    text = uncollected(line).lstrip()
    while HEAD.match(text) is None and (prefix := COLLECTOR.match(text) or ANY_PREFIX.match(text)) is not None:
        text = uncollected(text[prefix.end() :]).lstrip()
    stamp = STAMP.match(text)
    return (text.strip(), None) if stamp is None else (text[stamp.end() :].strip(), stamp["ts"])


def _other(text: str, ts: str | None) -> LogLine:
    if CUT.match(text):
        return LogLine(kind="partial", ts=ts, text=text)
    known = event(text)
    if known is not None:
        return LogLine(kind=known.kind, ts=ts, name=known.name, value=known.value, text=text)
    if FIGURES.match(text):
        return LogLine(kind="unrecognised", ts=ts, text=text)
    return LogLine(kind="known" if ts else "noise", ts=ts, text=text)


def _named(key: tuple[int, int]) -> dict[str, Any]:
    return {"slot": key[0], "task": key[1]} if key[0] >= 0 else {}


def _float(word: str | None) -> float | None:
    return None if word is None or "nan" in word else float(word)
