"""HTTP for the load client: httpx's face, our own wire, and the arrival time of every read.

    transport = FastTransport()
    client = httpx.AsyncClient(transport=transport, trust_env=False, headers={"accept-encoding": "identity"})
    await transport.preopen(base_url, 256)
    limits = request_extensions(total_s=600, wake_bytes=65536)
    async with client.stream("POST", url, content=body, extensions=limits) as response:
        async for events in EventStream(response):
            ...

`hub` waits for sockets; `links` reads and stamps; `exchange` is one request on one connection; `pool` keeps connections;
`wire` encodes; `sse` splits the body into events and gives each its arrival; `fast` is the transport that httpx calls.
"""

from specbench.execution.transport.arrivals import Arrivals, StampClock
from specbench.execution.transport.fast import FastTransport, proxy_note
from specbench.execution.transport.pool import raise_file_limit
from specbench.execution.transport.reading import EventStream
from specbench.execution.transport.sse import Blocks, Event, EventSplitter
from specbench.execution.transport.wire import WHOLE_BODY, Prepared, request_extensions

__all__ = [
    "WHOLE_BODY",
    "Arrivals",
    "Blocks",
    "Event",
    "EventSplitter",
    "EventStream",
    "FastTransport",
    "Prepared",
    "StampClock",
    "proxy_note",
    "raise_file_limit",
    "request_extensions",
]
