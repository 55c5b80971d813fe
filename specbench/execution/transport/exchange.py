"""One request and its response on one connection: the parser, the deadlines, and what waits for them."""

import asyncio
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

import httptools
import httpx

from specbench.clock import now_s
from specbench.execution.transport.arrivals import Arrivals
from specbench.execution.transport.connection import Link
from specbench.execution.transport.sse import Blocks
from specbench.execution.transport.timed import Timed
from specbench.execution.transport.wire import Limits, framing
from specbench.units import Second

_MAX_HEAD_BYTES: Final = 256 << 10
_HIGH_WATER_BYTES: Final = 1 << 20  # of unconsumed body: reading pauses, and the server feels the backpressure
FAULTS: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)


class Exchange(Timed):
    """Sends a request and collects its response.

    `take` is the hot path: it runs once a read, stamps it and wakes nobody until `wake_bytes` are there.
    """

    __slots__ = (
        *("arrivals", "complete", "headers", "on_body", "reused", "status_code"),
        *("_alert_bytes", "_blocks", "_body_blocks", "_deadline_s", "_defer", "_deferred"),
        *("_deferring", "_error", "_fed_blocks", "_feed", "_framed", "_head_done", "_keep_alive", "_last_s"),
        *("_limits", "_link", "_loop", "_mark", "_marks", "_parser", "_patient", "_paused", "_stamp"),
        *("_surplus", "_taken_bytes", "_trailer_bytes", "_waiter", "_wire_bytes", "_without_body"),
    )

    def __init__(self, limits: Limits, method: str, deadline_s: Second) -> None:
        self.arrivals = Arrivals()
        self.headers: list[tuple[bytes, bytes]] = []
        self.status_code = 0
        self.complete = False
        self._error: httpx.TransportError | None = None
        self._limits = limits
        self._without_body = method == "HEAD"
        self._deadline_s = deadline_s
        self._loop = asyncio.get_running_loop()
        self._blocks: list[bytes] = []
        self._marks: list[int] = []
        """Blocks there were after each stamped read: the byte offsets are computed from them off the hot path."""
        self._fed_blocks = 0
        self._deferred: list[bytes] = []
        """Reads of a chunked body not parsed yet: in a batch, off the hot path, it costs a third."""
        self._defer = self._deferred.append
        self.on_body: Callable[[bytes], None] = self._blocks.append
        self._stamp = self.arrivals.stamps_s.append
        self._mark = self._marks.append
        self._taken_bytes = 0
        self._wire_bytes = self._trailer_bytes = 0
        """Bytes read since the consumer last took some, framing included, and those of trailers."""
        self._deferring = self._head_done = self._framed = self._keep_alive = self._surplus = False
        self._paused = self._patient = self.reused = False
        self._body_blocks = -1  # blocks there were at the end of the response
        self._last_s: Second = 0.0
        self._alert_bytes = _HIGH_WATER_BYTES
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._link: Link | None = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._feed: Any = self._parser.feed_data

    def start(self, link: Link, message: bytes) -> None:
        """Sends. Raises NothingSentError."""
        self._link = link
        link.attach(self)
        self._last_s = self.arrivals.sent_s = now_s()
        link.send(message)
        if not self._over:
            self._timer = self._loop.call_later(max(0.0, self._next_look_s(self._last_s)), self._tick)

    # What the link calls.

    def take(self, data: bytes, at_s: Second) -> None:
        """One read."""
        if self._deferring:
            self._defer(data)
            self._stamp(at_s)
            self._wire_bytes += len(data)
            if data[-4:] == b"\r\n\r\n" or len(data) < 4:  # the only way for a chunked body to end
                self.parse()
        else:
            self._feed_now(data, at_s)
        if self._wire_bytes >= self._alert_bytes and not self._over:
            self._alert()

    def parse(self) -> bool:
        """Parses what was deferred. Whether there is something for the consumer."""
        try:
            for data in self._deferred:
                self._feed(data)
                self._mark(len(self._blocks))
        except FAULTS as error:
            self._mark(len(self._blocks))  # what came before the fault, in the same read
            self._reject(error)
        self._deferred.clear()
        if self.complete:
            self._finish()
        return bool(self._blocks)

    def end_of_stream(self) -> None:
        """The server closed its side."""
        self.parse()
        if not self._head_done:
            self._end(httpx.RemoteProtocolError("The server closed the connection without sending a response."))
        elif self._framed:
            self._end(httpx.RemoteProtocolError("The server closed the connection in the middle of the response's body."))
        else:
            self.complete = True
            self._finish()

    def fail(self, error: httpx.TransportError) -> None:
        """Ends the exchange and its connection; the first cause stands."""
        self.parse()
        self._end(error)

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._surplus = self.complete

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_done:
            self.headers.append((name, value))
            return
        self._trailer_bytes += len(name) + len(value)
        if self._trailer_bytes > _MAX_HEAD_BYTES:
            raise ValueError("trailers without end")

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status_code = self._parser.get_status_code()
        if 100 <= status_code < 200:
            self.headers.clear()
            return
        self.status_code = status_code
        self.arrivals.head_s = self._last_s
        self._framed, self._deferring = framing(status_code, self.headers, self._without_body)
        self._head_done = True
        if self._without_body:
            self._complete()
        if self._patient:
            self._alert_bytes = self._limits.max_body_bytes
        else:
            self._wake()

    def on_message_complete(self) -> None:
        if self._head_done and not self.complete:
            self._complete()
            self._body_blocks = len(self._blocks)

    # What the transport calls.

    async def head(self) -> None:
        """Waits for the final status and its headers."""
        while not self._head_done:
            if self._error is not None:
                raise self._error
            await self._wait(_MAX_HEAD_BYTES)

    async def block(self) -> bytes:
        """The next bytes of the body; empty at its end."""
        wake_bytes = min(self._limits.wake_bytes, self._limits.max_body_bytes)
        while not self._over and (self._wire_bytes < wake_bytes or not self.parse()):
            await self._wait(wake_bytes)
        if self._blocks:
            return self._drain()
        if self._error is not None:
            raise self._error
        return b""

    async def whole(self) -> Blocks:
        """The body, once it is complete: what waits is woken once. When this raises, `abandon` gives what had arrived."""
        self._patient = True
        while not self._over:
            await self._wait(self._limits.max_body_bytes if self._head_done else _MAX_HEAD_BYTES)
        if self._error is not None:
            raise self._error
        self._cut_surplus()
        return Blocks(self._blocks, self._marks)

    def abort(self) -> None:
        """Closes the connection unless the response is complete."""
        self.fail(httpx.ReadError("The response was abandoned."))

    def abandon(self) -> bytes:
        """As `abort`; returns the bytes of the body that nobody had taken."""
        self.abort()
        return self._drain() if self._blocks else b""

    @property
    def _over(self) -> bool:
        return self.complete or self._error is not None

    def _complete(self) -> None:
        self.complete = True
        self._keep_alive = self._parser.should_keep_alive()  # the parser forgets it after this callback

    def _feed_now(self, data: bytes, at_s: Second) -> None:
        self._last_s = at_s
        try:
            self._feed(data)
        except FAULTS as error:
            self._reject(error)
        if len(self._blocks) != self._fed_blocks:
            self._fed_blocks = len(self._blocks)
            self._stamp(at_s)
            self._mark(self._fed_blocks)
        elif not self._blocks and not self._taken_bytes:
            self.arrivals.loop_count = 0  # no body yet: the kernel begins to stamp a moment after it is first asked to
        self._wire_bytes += len(data)
        if self.complete:
            self._finish()

    def _reject(self, error: Exception) -> None:
        self._surplus = True
        if isinstance(error, httptools.HttpParserUpgrade):
            return self._end(httpx.RemoteProtocolError("The server wants to switch to another protocol (HTTP 101)."))
        return self._end(httpx.RemoteProtocolError(f"The response is not valid HTTP/1.1: {error}"))

    def _end(self, error: httpx.TransportError) -> None:
        if not self._over:
            self._error = error
            self._finish()

    def _cut_surplus(self) -> None:
        """What follows a whole response belongs to nobody."""
        if len(self._blocks) > self._body_blocks >= 0:
            del self._blocks[self._body_blocks :]
            self._marks[:] = [min(mark, self._body_blocks) for mark in self._marks]

    def _drain(self) -> bytes:
        self._cut_surplus()
        ends = list(accumulate(map(len, self._blocks), initial=self._taken_bytes))
        self.arrivals.offsets.extend(map(ends.__getitem__, self._marks))
        body = b"".join(self._blocks)
        self._blocks.clear()
        self._marks.clear()
        self._fed_blocks = self._wire_bytes = 0
        self._taken_bytes = ends[-1]
        if self._taken_bytes > self._limits.max_body_bytes:
            self.fail(self._too_long())
        elif self._paused and not self._over and self._link is not None:
            self._paused = False
            self._last_s = now_s()
            self._link.resume()
        return body

    def _too_long(self) -> httpx.RemoteProtocolError:
        return httpx.RemoteProtocolError(f"The response's body is longer than {self._limits.max_body_bytes} bytes.")

    def _alert(self) -> None:
        if not self._head_done and self._wire_bytes >= _MAX_HEAD_BYTES:
            self.fail(httpx.RemoteProtocolError(f"The response's head is longer than {_MAX_HEAD_BYTES} bytes."))
        elif self._patient:
            self.parse()
            left_bytes = self._limits.max_body_bytes - sum(map(len, self._blocks))
            self._alert_bytes = self._wire_bytes + left_bytes + 1
            if left_bytes < 0:
                self.fail(self._too_long())
        elif self._waiter is not None:
            self._wake()
        elif not self._paused and self._link is not None:
            self._paused = True
            self._link.pause()

    async def _wait(self, wake_bytes: int) -> None:
        self._waiter = self._loop.create_future()
        self._alert_bytes = wake_bytes
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._alert_bytes = _HIGH_WATER_BYTES

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        link, self._link = self._link, None
        if link is not None:
            if self._paused:
                link.resume()
            clean = self._keep_alive and self._framed and not self._surplus and not link.unsent_bytes()
            link.release(clean)
        self._parser = self._feed = None  # they hold this object: without the cycle it goes at once
        self._wake()
