"""The clients that `client.py` compares: each sends one request and fills a `Sample`."""

import argparse
import asyncio
import json
import os
import resource
import time
import urllib.request
from array import array
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httptools
import httpx
import msgspec

from specbench.dialects import HttpRequest
from specbench.execution.client import LoadClient, exchange, prepare
from specbench.execution.transport import EventSplitter, EventStream, FastTransport, request_extensions

HEADERS: Final = {"content-type": "application/json", "accept-encoding": "identity"}
EXTENSIONS: Final = request_extensions(wake_bytes=65536)
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Target:
    """Where to send, and what."""

    def __init__(self, port: int, tokens: int) -> None:
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}"
        self.path = "/v1/chat/completions"
        self.url = self.base_url + self.path
        message = {"role": "user", "content": "hello " * 64}
        body = {"model": "mock", "stream": True, "max_tokens": tokens, "stream_options": {"include_usage": True}}
        self.value = body | {"messages": [message]}
        self.body = json.dumps(self.value).encode()


class Sample:
    """One response: arrival and the server's own send time of each event."""

    def __init__(self) -> None:
        self.begun_s = time.monotonic()
        self.arrived_s = array("d")
        self.sent_ns = array("q")
        self.received_ns = 0
        self.complete = False

    def event(self, data: bytes, at_s: float) -> None:
        if data == b"[DONE]":
            self.complete = True
            return
        value = msgspec.json.decode(data)
        if value["choices"]:
            self.arrived_s.append(at_s)
            self.sent_ns.append(int(value["system_fingerprint"]))
            if not self.received_ns:
                self.received_ns = int(value["id"].rpartition("-")[2], 16)


Send = Callable[[Sample], Awaitable[None]]
Close = Callable[[], Awaitable[None]]


class Splitter:
    """The shortest correct-enough splitter, for the peers."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.rest = b""

    def feed(self, data: bytes, at_s: float) -> None:
        *blocks, self.rest = (self.rest + data).split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: "):
                self.sample.event(block[6:], at_s)


async def specbench(target: Target, streams: int, kernel_stamps: bool = True) -> tuple[Send, Close]:
    """As the load driver calls it: the request is encoded, the answer is read whole and decoded afterwards."""
    client = LoadClient(target.base_url, FastTransport(kernel_stamps=kernel_stamps))
    await client.preopen(streams)

    async def send(sample: Sample) -> None:
        seen = await exchange(client, prepare(client, HttpRequest(path=target.path, body=target.value), 600.0))
        if seen.error:
            raise RuntimeError(seen.error)
        events = seen.blocks.plain_events(seen.arrivals)  # as answers.py reads an answer
        for event in EventSplitter(seen.arrivals).feed(seen.joined()) if events is None else events:
            sample.event(event.data, event.at_s)

    return send, client.aclose


async def specbench_loop_stamps(target: Target, streams: int) -> tuple[Send, Close]:
    return await specbench(target, streams, kernel_stamps=False)


async def specbench_client(target: Target, streams: int) -> tuple[Send, Close]:
    """Through httpx.AsyncClient, as a newcomer would write it."""
    transport = FastTransport()
    client = httpx.AsyncClient(transport=transport, trust_env=False, headers=HEADERS)
    await transport.preopen(target.url, streams)

    async def send(sample: Sample) -> None:
        async with client.stream("POST", target.url, content=target.body, extensions=EXTENSIONS) as response:
            async for events in EventStream(response):
                for event in events:
                    sample.event(event.data, event.at_s)

    return send, client.aclose


class FloorProtocol(asyncio.Protocol):
    """The least that a client can do: asyncio, httptools, a split, the JSON."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.at_s = time.monotonic()
        self.parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self.splitter.feed(data, self.at_s)

    def on_message_complete(self) -> None:
        self.done.set_result(None)

    def start(self, message: bytes, sample: Sample) -> asyncio.Future[None]:
        self.splitter = Splitter(sample)
        self.parser = httptools.HttpResponseParser(self)
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(message)
        return self.done


async def floor(target: Target, streams: int) -> tuple[Send, Close]:
    loop = asyncio.get_running_loop()
    idle = [(await loop.create_connection(FloorProtocol, "127.0.0.1", target.port))[1] for _ in range(streams)]
    path = target.path
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(target.body)}\r\n\r\n".encode()

    async def send(sample: Sample) -> None:
        protocol = idle.pop()
        await protocol.start(head + target.body, sample)
        idle.append(protocol)

    async def close() -> None:
        for protocol in idle:
            protocol.transport.close()

    return send, close


async def aiohttp_any(target: Target, streams: int) -> tuple[Send, Close]:
    import aiohttp  # type: ignore[import-not-found]

    timeout = aiohttp.ClientTimeout(total=None)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout, headers=HEADERS)

    async def send(sample: Sample) -> None:
        splitter = Splitter(sample)
        async with session.post(target.url, data=target.body) as response:
            async for data in response.content.iter_any():
                splitter.feed(data, time.monotonic())

    return send, session.close


async def httpx_plain(target: Target, streams: int) -> tuple[Send, Close]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(timeout=None, limits=limits, trust_env=False, headers=HEADERS)

    async def send(sample: Sample) -> None:
        splitter = Splitter(sample)
        async with client.stream("POST", target.url, content=target.body) as response:
            async for data in response.aiter_raw():
                splitter.feed(data, time.monotonic())

    return send, client.aclose


MAKERS: Final = {
    "floor": floor,
    "specbench": specbench,
    "specbench-client": specbench_client,
    "specbench-loop-stamps": specbench_loop_stamps,
    "aiohttp": aiohttp_any,
    "httpx": httpx_plain,
}


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """Runs one stack. Raises if an event is lost."""
    if arguments.loop == "uvloop":
        import uvloop

        samples, usage = uvloop.run(drive(arguments))
    else:
        samples, usage = asyncio.run(drive(arguments))
    stats = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{arguments.port}/stats").read())
    events = sum(len(sample.arrived_s) for sample in samples)
    if events != stats["events"] or not all(sample.complete for sample in samples):
        raise RuntimeError(f"{events} events arrived of {stats['events']} sent")
    return summarise(samples, events, usage)


async def drive(arguments: argparse.Namespace) -> tuple[list[Sample], dict[str, float]]:
    target = Target(arguments.port, arguments.tokens)
    send, close = await MAKERS[arguments.stack](target, arguments.streams)
    samples: list[Sample] = []

    async def stream(index: int) -> None:
        await asyncio.sleep(0.5 * index / arguments.streams)
        for _ in range(arguments.requests):
            samples.append(Sample())
            await send(samples[-1])

    urllib.request.urlopen(f"http://127.0.0.1:{arguments.port}/reset").read()  # noqa: ASYNC210
    before, begun_s, rss_before = cpu_s(), time.monotonic(), rss_bytes()
    await asyncio.gather(*(stream(index) for index in range(arguments.streams)))
    usage = {"cpu_s": cpu_s() - before, "wall_s": time.monotonic() - begun_s, "grown_bytes": rss_bytes() - rss_before}
    await close()
    return samples, usage


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss_bytes() -> int:
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * _PAGE_BYTES


def summarise(samples: list[Sample], events: int, usage: dict[str, float]) -> dict[str, float]:
    offset_s = min((time.time() - time.monotonic() for _ in range(50)), key=lambda value: value)
    late = sorted(
        at_s + offset_s - sent * 1e-9
        for sample in samples
        for at_s, sent in zip(sample.arrived_s, sample.sent_ns, strict=True)
    )
    ttft = sorted(
        sample.arrived_s[0] - sample.begun_s - (sample.sent_ns[0] - sample.received_ns) * 1e-9 for sample in samples
    )
    return {
        "us_event": usage["cpu_s"] / events * 1e6,
        "late_p50_ms": late[len(late) // 2] * 1e3,
        "late_p99_ms": late[int(len(late) * 0.99)] * 1e3,
        "ttft_error_p99_ms": ttft[int(len(ttft) * 0.99)] * 1e3,
        "core_ratio": usage["cpu_s"] / usage["wall_s"],
        "events_per_s": events / usage["wall_s"],
        "grown_bytes_event": usage["grown_bytes"] / events,
    }
