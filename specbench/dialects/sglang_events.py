"""SGLang's other lines: start-up phases with their values, warnings that change the question, faults, and noise."""

import re
from typing import NamedTuple

from specbench.dialects import LineKind
from specbench.dialects.messages import EXCEPTION, Event
from specbench.dialects.sglang_causes import cause_code

Scalar = float | int | str | bool
NUMBER = r"-?\d{1,15}(?:\.\d{1,15})?"


class Shape(NamedTuple):
    """A message known by its beginning."""

    kind: LineKind
    name: str
    pattern: re.Pattern[str]
    state: str = ""
    """`begin` or `end` of a phase."""


def _shape(kind: LineKind, name: str, pattern: str, state: str = "") -> Shape:
    return Shape(kind, name, re.compile(pattern), state)


SHAPES = (
    _shape("ready", "ready", r"The server is fired up and ready to roll!"),
    _shape("flush", "flushed", r"Cache flushed successfully!"),
    _shape("flush", "flush_refused", r"Cache not flushed because there are pending requests"),
    _shape("phase", "distributed", r"Init torch distributed begin", "begin"),
    _shape("phase", "distributed", r"Init torch distributed ends", "end"),
    _shape("phase", "weights", r"Load weight begin", "begin"),
    _shape("phase", "weights", r"Load weight end", "end"),
    _shape("phase", "weights", r"Loading .*checkpoint shards"),
    _shape("phase", "kv_cache", r"(?:[\w .:()-]{0,60} )?KV Cache is allocated", "end"),
    _shape("phase", "kv_cache", r"Memory pool end", "end"),
    _shape("phase", "draft_graph_capture", r"Capture draft .*begin", "begin"),
    _shape("phase", "draft_graph_capture", r"Capture draft .*end\b", "end"),
    _shape("phase", "verify_graph_capture", r"Capture target verify .*begin", "begin"),
    _shape("phase", "verify_graph_capture", r"Capture target verify .*end\b", "end"),
    _shape("phase", "prefill_graph_capture", r"Capture (?:target )?(?:prefill|piecewise) .*begin", "begin"),
    _shape("phase", "prefill_graph_capture", r"Capture (?:target )?(?:prefill|piecewise) .*end\b", "end"),
    _shape("fatal", "graph_capture_failed", r"Capture (?:\w+ )*(?:cuda|CUDA) graph failed"),
    _shape("phase", "graph_capture", r"Capture (?:[\w ]+ )?(?:cuda|CUDA|cpu|npu) graph begin", "begin"),
    _shape("phase", "graph_capture", r"Capture (?:[\w ]+ )?(?:cuda|CUDA|cpu|npu) graph end", "end"),
    _shape("phase", "graph_capture", r"Capturing batches|Capturing num tokens"),
    _shape("phase", "limits", r"max_total_num_tokens=-?\d"),
    _shape("phase", "warmup", r"Start of warmup|End of .*warmup"),
    _shape("phase", "http", r"(?:INFO: +)?Uvicorn running on|(?:INFO: +)?Application startup complete"),
    _shape("warning", "max_running_requests_reset", r"Max running requests is reset to"),
    _shape("warning", "draft_tokens_adjusted", r"speculative_num_draft_tokens is adjusted to"),
    _shape("warning", "draft_tokens_default", r"speculative_num_draft_tokens is (?:set to|not set)"),
    _shape("warning", "speculation_overridden", r"DFLASH only supports speculative_"),
    _shape("warning", "overlap_disabled", r"Overlap schedule(?:r)? is (?:disabled|not implemented)|The overlap scheduler"),
    _shape("warning", "overlap_changed", r"Spec v2 is enabled|Non-overlap \(synchronous\) spec v2"),
    _shape("warning", "mixed_chunk_disabled", r"(?:The )?[Mm]ixed chunked prefill (?:is|are) disabled"),
    _shape("warning", "deprecated_endpoint", r"Endpoint '[^']*' is deprecated"),
    _shape("warning", "deprecated_flag", r".{0,80}--[a-z][a-z-]{1,60}.{0,40}(?:is|are) deprecated|DEPRECATED"),
    _shape("warning", "context_length", r".*(?:context[ _]length).*(?:greater|longer|exceed)"),
    _shape("warning", "retracted", r"(?:KV cache pool is full|Decode out of memory happened)"),
    _shape("warning", "memory_unbalanced", r"The memory capacity is unbalanced"),
    _shape("warning", "backend_fallback", r"The current platform does not support Intel AMX"),
    _shape("known", "server_args", r"server_args=ServerArgs\("),
    _shape("known", "request_echo", r"(?:Receive|Finish)\b.{0,20}obj="),
    _shape("known", "internal_state", r".*avg_spec_accept_length="),
    _shape("known", "shutdown", r"SIGTERM received|Gracefully exiting|(?:INFO: +)?Shutting down"),
    _shape("fatal", "exception", r"\w+ hit an exception"),
    _shape("fatal", "child_failed", r"Received sigquit from a child process|SIGQUIT received"),
    _shape("fatal", "subprocess_crashed", r"Subprocess \S+ \(pid=\d+\) crashed"),
    _shape("fatal", "subprocess_crashed", r"Rank \d+ scheduler is dead"),
    _shape("fatal", "nccl_error", r"(?:\[[^\]]{0,80}\]:? ?){1,4}Watchdog caught collective operation timeout"),
    _shape("fatal", "watchdog_timeout", r"(?:\w+ )?[Ww]atchdog timeout"),
    _shape("fatal", "warmup_failed", r"Initialization failed\."),
    _shape("fatal", "health_check_failed", r"Health check failed\."),
    _shape("fatal", "port_in_use", r"(?:ERROR: +)?\[Errno 98\]|.*[Pp]ort \d+ is already in use"),
    _shape("noise", "access", r'INFO: +\S+ - "'),
    _shape("noise", "progress", r"[^\[]*\d{1,3}%\|"),
    _shape("noise", "traceback", r'File "|Traceback \(most recent call last\)'),
)

VALUE_NAMES = {
    "avail mem": "available_gb",
    "mem usage": "used_gb",
    "available_gpu_mem": "available_gb",
    "available_cpu_mem": "available_gb",
    "elapsed": "elapsed_s",
    "Time elapsed": "elapsed_s",
    "#tokens": "tokens",
    "K size": "k_gb",
    "V size": "v_gb",
    "KV size": "kv_gb",
    "num_tokens_per_req": "tokens_per_request",
    "bs": "batch_size",
    "avail_mem": "available_gb",
    "self.watchdog_timeout": "timeout_s",
    "#queue-req": "queue_requests",
    "#running-req": "running_requests",
}
PAIR = re.compile(rf"(avail mem|mem usage|Time elapsed|KV size|K size|V size|[#\w.]+)(?:=|: )({NUMBER})")
WORDS = re.compile(r"\b(type|dtype|backend)=([\w./]+)")
PROGRESS = re.compile(r"\| *(\d{1,7})/(\d{1,7}) ")
RESET = re.compile(r"Max running requests is reset to (\d{1,9})")
ARGUMENT = re.compile(r"\b(\w+)=('[^']*'|\"[^\"]*\"|-?[\d.]+(?=[,)])|True|False|None)")


def event(text: str) -> Event | None:
    """None when no shape fits: it may be anything."""
    if not text:
        return Event("noise", "blank", {})
    for shape in SHAPES:
        if shape.pattern.match(text):
            return Event(shape.kind, shape.name, _values(shape, text))
    if not EXCEPTION.match(text):
        return None
    code = cause_code(text)  # others may be about one request only
    return Event("fatal" if code else "known", code or "exception", {})


def server_args(text: str) -> dict[str, Scalar]:
    """The arguments that `server_args=ServerArgs(…)` prints, those that are plain values; None is left out."""
    found: dict[str, Scalar] = {}
    for name, word in ARGUMENT.findall(text):
        if word in ("True", "False"):
            found[name] = word == "True"
        elif word[0] in "'\"":
            found[name] = word[1:-1]
        elif word != "None":
            found[name] = _number(word)
    return found


def _values(shape: Shape, text: str) -> dict[str, Scalar]:
    if shape.name == "server_args":
        return server_args(text)
    if shape.kind not in ("phase", "warning", "fatal", "flush"):
        return {}
    values: dict[str, Scalar] = {"state": shape.state} if shape.state else {}
    for key, number in PAIR.findall(text):
        values[VALUE_NAMES.get(key.strip(), key.strip())] = _number(number)
    values.update(WORDS.findall(text))
    progress = PROGRESS.search(text)
    if progress:
        values["done_count"], values["total_count"] = int(progress.group(1)), int(progress.group(2))
    reset = RESET.match(text)
    if reset:
        values["max_running_requests"] = int(reset.group(1))
    return values


def _number(word: str) -> float | int | str:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word
