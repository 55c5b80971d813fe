"""A response read as server-sent events, in batches: few awaits, no JSON."""

from collections.abc import AsyncIterator

import httpx

from specbench.execution.transport.arrivals import Arrivals
from specbench.execution.transport.sse import Event, EventSplitter


class EventStream:
    """`async for events in EventStream(response)`: the events that came with each block of the body, never an empty list.

    Raises httpx.DecodingError when the body is compressed, for then no byte of it has an arrival of its own, and
    httpx.RemoteProtocolError when it ends inside an event or holds a line that is no server-sent event.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self.arrivals: Arrivals = response.extensions["arrivals"]
        self._splitter = EventSplitter(self.arrivals)

    async def __aiter__(self) -> AsyncIterator[list[Event]]:
        coding = self._response.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise httpx.DecodingError(f"The server sent {coding} although the request accepts only identity.")
        async for block in self._response.aiter_raw():
            try:
                events = self._splitter.feed(block)
            except ValueError as error:
                raise httpx.RemoteProtocolError(str(error)) from error
            if events:
                yield events
            self._refuse_garbage()
        if self._splitter.unfinished not in (b"", b"data: [DONE]"):
            raise httpx.RemoteProtocolError(f"The stream ended inside an event: {self._splitter.unfinished[:80]!r}.")

    def _refuse_garbage(self) -> None:
        if self._splitter.garbage_line_count:
            raise httpx.RemoteProtocolError("The stream holds a line that is no server-sent event.")
