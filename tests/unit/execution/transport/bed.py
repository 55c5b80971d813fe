"""A server that does what a test writes down, and both event loops to meet it on."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from specbench.execution.transport import FastTransport

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HEADERS = {"accept-encoding": "identity"}


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of one request; both empty when the client has gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b"", b""
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head, await reader.readexactly(length)


def reset(writer: asyncio.StreamWriter) -> None:
    """Closes with a RST, as a server that dies does."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Meeting:
    """One client and one scripted server."""

    def __init__(self, transport: FastTransport, client: httpx.AsyncClient, url: str) -> None:
        self.transport = transport
        self.client = client
        self.url = url
        self.accepted_count = 0


Scenario = Callable[[Meeting], Awaitable[Any]]
Drive = Callable[..., Any]


async def meet(
    handler: Handler, scenario: Scenario, tls: tuple[ssl.SSLContext, ssl.SSLContext] | None, **options: Any
) -> Any:
    tasks: set[asyncio.Task[Any]] = set()
    meeting: Meeting | None = None

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert meeting is not None
        meeting.accepted_count += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError):
                await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls[0] if tls else None, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    transport = FastTransport(ssl_context=tls[1] if tls else None, **options)
    async with httpx.AsyncClient(transport=transport, trust_env=False, headers=HEADERS) as client:
        meeting = Meeting(
            transport, client, f"{'https' if tls else 'http'}://{'localhost' if tls else '127.0.0.1'}:{port}/x"
        )
        result = await asyncio.wait_for(scenario(meeting), 20)
    assert transport.open_count == 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    server.close()
    await server.wait_closed()
    await asyncio.sleep(0)
    return result


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def answering(*answers: bytes) -> Any:
    """A handler that gives these answers to the requests of one connection, in turn, then waits for its end."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head, _ = await read_request(reader)
            if not head:
                return
            writer.write(answer)
            await writer.drain()
        await reader.read()

    return handler


def closing(answer: bytes) -> Any:
    """A handler that answers once and closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)

    return handler
