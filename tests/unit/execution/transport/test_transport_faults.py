"""What a server does wrong, or too late, is one httpx error; nothing stays open behind it."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from specbench.execution.transport import (
    WHOLE_BODY,
    FastTransport,
    Prepared,
    request_extensions,
)
from tests.unit.execution.transport.bed import CHUNKED, Drive, Meeting, answering, chunk, closing, read_request, reset


def test_a_header_with_a_line_break_is_refused(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        with pytest.raises(httpx.LocalProtocolError):
            await meeting.client.get(meeting.url, headers={"x": "a\r\nEvil: 1"})
        assert meeting.accepted_count == 0

    drive(answering(), scenario)


def test_a_certificate_nobody_vouches_for_is_a_connect_error(drive: Drive, tls_contexts: Any) -> None:
    async def scenario(meeting: Meeting) -> None:
        stranger = FastTransport()
        async with httpx.AsyncClient(transport=stranger, trust_env=False) as client:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await client.get(meeting.url)

    drive(answering(), scenario, tls=tls_contexts)


async def no_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)


async def reset_in_the_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(CHUNKED + chunk(b"some"))
    await writer.drain()
    reset(writer)


FAULTS: dict[str, tuple[Any, type[httpx.TransportError], str]] = {
    "no answer": (no_answer, httpx.RemoteProtocolError, "without sending a response"),
    "cut off in a chunk": (closing(CHUNKED + b"5\r\nab"), httpx.RemoteProtocolError, "in the middle"),
    "cut off before the last chunk": (closing(CHUNKED + chunk(b"ab")), httpx.RemoteProtocolError, "in the middle"),
    "shorter than its length": (
        closing(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
        httpx.RemoteProtocolError,
        "in the middle",
    ),
    "not HTTP": (closing(b"SSH-2.0-OpenSSH_9.6\r\n"), httpx.RemoteProtocolError, "not valid HTTP/1.1"),
    "garbage for a chunk size": (closing(CHUNKED + b"zz\r\nab\r\n"), httpx.RemoteProtocolError, "not valid HTTP/1.1"),
    "head without end": (
        closing(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 60_000),
        httpx.RemoteProtocolError,
        "head is longer",
    ),
    "upgrade": (closing(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), httpx.RemoteProtocolError, "not valid"),
    "reset": (reset_in_the_body, httpx.ReadError, "broke while reading"),
}


@pytest.mark.parametrize(("handler", "error", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_server_is_one_httpx_error(
    drive: Drive, handler: Any, error: type[httpx.TransportError], words: str
) -> None:
    async def scenario(meeting: Meeting) -> None:
        with pytest.raises(error, match=words):
            await meeting.client.post(meeting.url, content=b"{}")
        assert meeting.transport.open_count == 0

    drive(handler, scenario)


def test_what_came_before_a_fault_is_delivered_first(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        got = []
        with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012
            async with meeting.client.stream(
                "GET", meeting.url, extensions=request_extensions(wake_bytes=WHOLE_BODY)
            ) as response:
                async for block in response.aiter_raw():
                    got.append(block)
        assert b"".join(got) == b"before"

    drive(closing(CHUNKED + chunk(b"before")), scenario)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def silent_after_the_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(CHUNKED)
    await reader.read()


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(CHUNKED)
    while True:
        writer.write(chunk(b"data: x\n\n"))
        await writer.drain()
        await asyncio.sleep(0.01)


LATE: dict[str, tuple[Any, dict[str, Any], str]] = {
    "read before the head": (silent, {"timeout": httpx.Timeout(None, read=0.1)}, "Nothing arrived for 0.1 s"),
    "read in the body": (silent_after_the_head, {"timeout": httpx.Timeout(None, read=0.1)}, "Nothing arrived for 0.1 s"),
    "first byte": (
        silent_after_the_head,
        {"timeout": None, "extensions": request_extensions(first_byte_s=0.1)},
        "No first byte .* within 0.1 s",
    ),
    "total": (endless, {"timeout": None, "extensions": request_extensions(total_s=0.2)}, "not complete after 0.2 s"),
}


@pytest.mark.parametrize(("handler", "options", "words"), LATE.values(), ids=LATE.keys())
def test_each_time_limit_holds(drive: Drive, handler: Any, options: dict[str, Any], words: str) -> None:
    async def scenario(meeting: Meeting) -> None:
        begun = time.monotonic()
        with pytest.raises(httpx.ReadTimeout, match=words):
            await meeting.client.get(meeting.url, **options)
        assert 0.09 < time.monotonic() - begun < 1.5
        assert meeting.transport.open_count == 0

    drive(handler, scenario)


def test_a_request_that_nobody_takes_times_out(drive: Drive) -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async def scenario(meeting: Meeting) -> None:
        with pytest.raises(httpx.WriteTimeout):
            await meeting.client.post(meeting.url, content=b"x" * (32 << 20), timeout=httpx.Timeout(None, write=0.2))

    drive(deaf, scenario)


def test_connecting_is_limited_too(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> None:
        await asyncio.sleep(30)

    async def scenario(meeting: Meeting) -> None:
        monkeypatch.setattr("specbench.execution.transport.pool._resolve", never)
        with pytest.raises(httpx.ConnectTimeout, match="did not accept within"):
            await meeting.client.get(meeting.url, timeout=httpx.Timeout(None, connect=0.1))
        with pytest.raises(httpx.ConnectTimeout, match="did not accept within"):
            await meeting.client.get(meeting.url, timeout=None, extensions=request_extensions(total_s=0.1))

    drive(answering(), scenario)


def test_nobody_listening_is_a_connect_error(drive: Drive, closed_port: int) -> None:
    async def scenario(meeting: Meeting) -> None:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(httpx.ConnectError, match=f"No connection to {host}"):
                await meeting.client.get(f"http://{host}:{closed_port}/")
        with pytest.raises(httpx.ConnectError):
            await meeting.transport.preopen(f"http://127.0.0.1:{closed_port}/", 2)
        with pytest.raises(httpx.UnsupportedProtocol):
            await meeting.transport.preopen("ftp://127.0.0.1/", 2)

    drive(answering(), scenario)


@pytest.mark.parametrize("at", ["head", "body"])
def test_cancelling_closes_the_socket(drive: Drive, at: str) -> None:
    gone = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        if at == "body":
            writer.write(CHUNKED + chunk(b"some"))
        await reader.read()
        gone.set()

    async def scenario(meeting: Meeting) -> None:
        task = asyncio.create_task(meeting.client.get(meeting.url, timeout=None))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)
        assert meeting.transport.open_count == 0

    drive(handler, scenario)


def test_closing_the_client_fails_what_is_in_flight(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        task = asyncio.create_task(meeting.client.get(meeting.url, timeout=None))
        await asyncio.sleep(0.1)
        await meeting.transport.aclose()
        with pytest.raises(httpx.ReadError, match="closed by the client"):
            await task

    drive(silent, scenario)


@pytest.mark.parametrize("wake_bytes", [1, WHOLE_BODY])
def test_a_body_longer_than_allowed_is_refused(drive: Drive, wake_bytes: int) -> None:
    extensions = request_extensions(max_body_bytes=100, wake_bytes=wake_bytes)

    async def scenario(meeting: Meeting) -> None:
        with pytest.raises(httpx.RemoteProtocolError, match="longer than 100 bytes"):
            await meeting.client.get(meeting.url, extensions=extensions)

    drive(endless, scenario)


LONG_HEAD = b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 60_000


@pytest.mark.parametrize(("answer", "words"), [(None, "body is longer than 100"), (LONG_HEAD, "head is longer than")])
def test_an_answer_taken_whole_has_the_same_limits(drive: Drive, answer: bytes | None, words: str) -> None:
    async def scenario(meeting: Meeting) -> None:
        request = meeting.client.build_request("GET", meeting.url, extensions=request_extensions(max_body_bytes=100))
        exchange = await meeting.transport.start(Prepared.of(request))
        with pytest.raises(httpx.RemoteProtocolError, match=words):
            await exchange.whole()

    drive(endless if answer is None else answering(answer), scenario)


def test_what_had_arrived_of_an_answer_taken_whole_is_not_lost(drive: Drive) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED + b"3\r\none\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        reset(writer)

    async def scenario(meeting: Meeting) -> None:
        exchange = await meeting.transport.start(Prepared.of(meeting.client.build_request("GET", meeting.url)))
        with pytest.raises(httpx.ReadError):
            await exchange.whole()
        assert exchange.abandon() == b"one"
        assert len(exchange.arrivals.stamps_s) == 1

    drive(handler, scenario)
