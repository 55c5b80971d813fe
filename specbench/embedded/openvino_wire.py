"""What the server's front and the process that holds OpenVINO's pipeline say to each other: one JSON value a line."""

import socket
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from specbench.units import Second

READ_BYTES = 1 << 16


class Settings(Struct, frozen=True, kw_only=True):
    """The first line that the worker reads: what to load."""

    model: str
    drafter: str | None = None
    """A drafter's folder; None without one."""
    proposed_tokens: int = 0
    """K: tokens proposed a verify step; 0 without speculation."""
    ngram: int = 0
    """Prompt lookup: longest n-gram matched; 0 without prompt lookup."""
    max_running_requests: int
    max_prefill_tokens: int
    """Prompt tokens a step; a longer prompt takes several."""
    capacity_tokens: int
    """Slots of the target's KV cache."""
    context_length: int
    """Prompt and answer together, in tokens."""


class Add(Struct, frozen=True, kw_only=True, tag="add"):
    """A new request; it joins at the next step. `messages` when the chat template is to be applied, else `text`."""

    id: int
    text: str = ""
    messages: Sequence[dict[str, str]] | None = None
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    ignore_eos: bool = False
    seed: int | None = None


class Cancel(Struct, frozen=True, kw_only=True, tag="cancel"):
    """Nobody waits for the request any more; it is dropped at the next step."""

    id: int


class Loading(Struct, frozen=True, kw_only=True, tag="loading"):
    """A step of the start-up begins or has ended."""

    name: str
    done: bool = False
    elapsed_s: Second = 0.0


class Ready(Struct, frozen=True, kw_only=True, tag="ready"):
    """Requests are welcome."""

    version: str


class Output(Struct, frozen=True, kw_only=True):
    """What one step gave one request."""

    id: int
    token_ids: Sequence[int]
    text: str
    """May be empty while a character is not whole."""
    prompt_tokens: int
    first: bool
    """It ends the request's prefill."""
    verified: bool
    """It is a verify step: with speculation every one, the first only if it brought several tokens."""
    proposed_tokens: int | None
    """Draft tokens that were verified; None when the engine does not say (prompt lookup)."""
    finish_reason: str | None = None
    error: str | None = None


class Stepped(Struct, frozen=True, kw_only=True, tag="stepped"):
    """One step of the whole batch."""

    step_s: Second
    outputs: Sequence[Output]
    running_requests: int
    """After the step."""


class Failed(Struct, frozen=True, kw_only=True, tag="failed"):
    """A request that the pipeline refused."""

    id: int
    message: str


class Fatal(Struct, frozen=True, kw_only=True, tag="fatal"):
    """The worker ends after this line."""

    message: str


ToWorker = Add | Cancel
FromWorker = Loading | Ready | Stepped | Failed | Fatal


class Channel:
    """The worker's end of the pair."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._rest = b""
        self.closed = False
        """The other side is gone."""

    def send(self, value: Struct) -> None:
        """Raises OSError when the other side is gone."""
        self._end.sendall(msgspec.json.encode(value) + b"\n")

    def receive(self, wait: bool) -> list[bytes]:
        """Whole lines that have arrived; when `wait`, at least one unless the other side is gone."""
        while True:
            try:
                block = self._end.recv(READ_BYTES, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
            except OSError:
                block = b""
            self.closed = not block
            *lines, self._rest = (self._rest + block).split(b"\n")
            if lines or self.closed or not wait:
                return lines
