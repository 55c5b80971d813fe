"""A server whose answers are known: `python -m specbench.execution.truth` streams what a request's script says, and
remembers when it sent each chunk. The load client is measured against it.

It speaks `/v1/chat/completions`; the last message's content is the script, as JSON (`Script`). `GET /dump` gives and
forgets what was sent (`Sent`, a list), on the clock of `specbench.clock.now_s`, which processes of one machine share. It
prints its port as the first line and ends when its standard input is closed. Written for asyncio's own loop, whose
transports send at once; uvloop's send later than they are told.
"""

import asyncio
import contextlib
import functools
import gc
import sys
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from specbench.clock import now_s
from specbench.units import Second

HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


class Script(Struct, frozen=True, kw_only=True):
    """What one answer is to be."""

    name: str = ""
    first_s: Second = 0.05
    """From the request's arrival to the first chunk."""
    step_s: Second = 0.02
    """Between chunks; 0: as fast as it goes."""
    chunk_count: int = 10
    token_counts: tuple[int, ...] = (1,)
    """Tokens of the chunks, over and over."""
    usage: Literal["chunk", "end", "none"] = "chunk"
    """Where it tells its counts."""
    finish_reason: str = "stop"
    lockstep: bool = False
    """Chunks leave at the multiples of `step_s`, all answers' at the same instant, as an engine's step does it."""
    events_per_write: int = 1
    """Chunks that leave together; `Sent` then holds them as one."""

    def tokens_of(self, chunk_index: int) -> int:
        """Of one chunk."""
        return self.token_counts[chunk_index % len(self.token_counts)]


class Sent(Struct, kw_only=True):
    """What one answer was. Times are `clock.now_s()`."""

    name: str
    received_s: Second
    sent_s: list[Second] = []
    """Just before each chunk was handed to the kernel."""
    chunk_tokens: list[int] = []


class Truth(asyncio.Protocol):
    """One connection."""

    def __init__(self, sent: list[Sent]) -> None:
        self._all_sent = sent
        self._data = b""
        self._writable = asyncio.Event()
        self._writable.set()
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answering:
            self._answering.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        received_s = now_s()
        self._data += data
        head, blank, rest = self._data.partition(b"\r\n\r\n")
        length_bytes = _content_length(head)
        if not blank or len(rest) < length_bytes:
            return
        self._data = rest[length_bytes:]
        path = head.split(b" ", 2)[1]
        if path == b"/v1/chat/completions":
            self._begin(rest[:length_bytes], received_s)
        elif path == b"/dump":
            self._json(self._all_sent)
            self._all_sent.clear()
        else:
            self._json({"data": [{"id": "truth"}]})

    def _begin(self, body: bytes, received_s: Second) -> None:
        try:
            script = msgspec.json.decode(msgspec.json.decode(body)["messages"][-1]["content"], type=Script)
        except (msgspec.MsgspecError, KeyError, IndexError, TypeError) as error:
            self._json({"error": {"message": f"the last message holds no script: {error}"}}, b"400 Bad Request")
            return
        sent = Sent(name=script.name, received_s=received_s)
        self._all_sent.append(sent)
        self._answering = asyncio.ensure_future(self._answer(script, sent))

    async def _answer(self, script: Script, sent: Sent) -> None:
        self._transport.write(HEAD)
        total_tokens = 0
        for begin in range(0, script.chunk_count, script.events_per_write):
            indices = range(begin, min(begin + script.events_per_write, script.chunk_count))
            counts = [script.tokens_of(index) for index in indices]
            events = [_token_event(total_tokens := total_tokens + count, script.usage == "chunk") for count in counts]
            await _until(_due_s(script, sent.received_s, begin))
            await self._writable.wait()
            at_s = now_s()
            self._transport.write(b"".join(events))
            sent.sent_s.append(at_s)
            sent.chunk_tokens.append(sum(counts))
        self._transport.write(_ending(script, total_tokens))

    def _json(self, value: Any, status: bytes = b"200 OK") -> None:
        body = msgspec.json.encode(value)
        self._transport.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body))


def _due_s(script: Script, received_s: Second, chunk_index: int) -> Second:
    due_s = received_s + script.first_s + chunk_index * script.step_s
    return (due_s // script.step_s + 1) * script.step_s if script.lockstep and script.step_s else due_s


async def _until(due_s: Second) -> None:
    while (left_s := due_s - now_s()) > 0:  # noqa: ASYNC110 (a moment, not an event)
        await asyncio.sleep(left_s)
    await asyncio.sleep(0)


def _content_length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)


def _choice(text: str, finish_reason: str | None) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish_reason}]


def _event(choices: list[dict[str, Any]], total_tokens: int | None) -> bytes:
    usage = {} if total_tokens is None else {"usage": {"prompt_tokens": 1, "completion_tokens": total_tokens}}
    return _chunk(b"data: %b\n\n" % msgspec.json.encode({"choices": choices} | usage))


@functools.lru_cache(maxsize=1 << 16)
def _token_event(total_tokens: int, counted: bool) -> bytes:
    """All answers' events are alike: encoded once, so that the server costs less than the client."""
    return _event(_choice("tok ", None), total_tokens if counted else None)


def _ending(script: Script, total_tokens: int) -> bytes:
    usage = b"" if script.usage == "none" else _event([], total_tokens)
    return _event(_choice("", script.finish_reason), None) + usage + _chunk(b"data: [DONE]\n\n") + LAST_CHUNK


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def serve() -> None:
    """Until standard input is closed."""
    loop = asyncio.get_running_loop()
    sent: list[Sent] = []
    server = await loop.create_server(lambda: Truth(sent), "127.0.0.1", 0, backlog=1024)
    closed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), closed.set)
    gc.freeze()
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await closed.wait()
    server.close()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
