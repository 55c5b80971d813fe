"""What servers speak: their log, line by line, and their HTTP, event by event. Pure: text and bytes in, values out.

A log line is one of five: a decode sample, another line of the engine's own (`known`), noise, a line that was cut off
(`partial`), or a shape that the grammar does not know (`unrecognised`). None of them ever raises.
"""

from typing import Any, Literal, Protocol

from msgspec import Struct, field


class DecodeSample(Struct, frozen=True, kw_only=True):
    """What one decode line says of the steps since the line before."""

    ts: str | None = None
    """The innermost clock, as printed."""
    rank: dict[str, int] | None = None
    """`{"dp": 0, "tp": 0}`; None when no rank is printed."""
    running_requests: int | None = None
    queue_requests: int | None = None
    accept_length: float | None = None
    """Tokens per verify step, bonus token included, as printed."""
    accept_rate: float | None = None
    """As printed; its meaning depends on the version. Never compared, always recomputed."""
    gen_throughput_tps: float | None = None
    cuda_graph: bool | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """Other key/value pairs of the line, in neutral names where one exists: plain values, or a list by draft position."""


LineKind = Literal[
    "decode", "prefill", "phase", "ready", "warning", "fatal", "flush", "known", "noise", "partial", "unrecognised"
]


class LogLine(Struct, frozen=True, kw_only=True):
    """One line, understood as far as its grammar goes."""

    kind: LineKind
    ts: str | None = None
    sample: DecodeSample | None = None
    """Set when `kind` is `decode`."""
    name: str = ""
    """`phase`: weights, kv_cache, graph_capture, …; `fatal`: a cause's code."""
    value: dict[str, Any] = field(default_factory=dict)
    """Numbers the line carries, by neutral name with its unit."""
    text: str = ""
    """The message without its prefixes."""
    rank: dict[str, int] | None = None
    """The process that wrote it, as `DecodeSample.rank`."""
    also: tuple["LogLine", ...] = ()
    """Further messages that other processes wrote into the same line."""


Convention = Literal[
    "tokens_over_steps_plus_1",
    "tokens_over_draft_tokens",
    "drafts_over_draft_tokens_minus_1",
    "percent_accepted_over_drafted",
    "fraction_accepted_over_drafted_incl_after_rejection",
    "fraction_accepted_over_generated",
]
"""What a printed accept rate means. Rates of different conventions are never compared."""


class DeathCause(Struct, frozen=True, kw_only=True):
    """Why a server did not start, or died: from its log, never from the exit code alone."""

    code: str
    """`out_of_memory_graph_capture`, `draft_path_missing`, …; `unknown` when only consequences are logged."""
    sentence: str
    decisive_line: int | None = None
    """1-based line of the log; None when no line names a cause."""
    values: dict[str, Any] = field(default_factory=dict)
    advice: str = ""
    """What to do, with the flags to change; empty when there is nothing to say."""


class Message(Struct, frozen=True, kw_only=True):
    """One turn as the chat API takes it."""

    role: str
    content: str


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One streaming POST."""

    path: str
    body: dict[str, Any]


class ChunkFacts(Struct, frozen=True, kw_only=True):
    """What one server-sent event says. None: it says nothing of it. Counts are cumulative for the request."""

    text: str = ""
    """New text, not cumulative."""
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    verify_count: int | None = None
    correct_tokens: int | None = None
    proposed_tokens: int | None = None
    accept_histogram: tuple[int, ...] = ()
    finish_reason: str | None = None
    error: str | None = None
    carries_tokens: bool = True
    """False for an event that only reports (role, usage at the end): its arrival is no chunk."""


class EventReader(Protocol):
    """Reads the events of one response in order; holds what it needs between them (cumulative text)."""

    def read(self, data: bytes) -> ChunkFacts:
        """`data` is the payload of one `data:` event other than `[DONE]`. Raises ValueError on garbage."""
        ...
