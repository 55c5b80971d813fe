"""The transport against a server that does everything a server may do."""

import asyncio
import itertools
import sys
import time
from typing import Any

import httpx
import pytest

from specbench.execution.transport import (
    WHOLE_BODY,
    Arrivals,
    FastTransport,
    proxy_note,
    raise_file_limit,
    request_extensions,
)
from tests.unit.execution.transport.bed import Drive, Meeting, read_request, reset

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


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


BODIES = {
    "chunked": CHUNKED + chunk(b"one") + chunk(b"two") + b"0\r\n\r\n",
    "chunked with a trailer": CHUNKED + chunk(b"onetwo") + b"0\r\nx-sum: 1\r\n\r\n",
    "content-length": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nonetwo",
    "after 100-continue": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nonetwo",
}


@pytest.mark.parametrize("answer", BODIES.values(), ids=BODIES.keys())
def test_a_body_is_read_whole_and_its_connection_used_again(drive: Drive, answer: bytes) -> None:
    async def scenario(meeting: Meeting) -> None:
        for _ in range(3):
            response = await meeting.client.post(meeting.url, content=b"{}")
            assert (response.status_code, response.content) == (200, b"onetwo")
            arrivals = response.extensions["arrivals"]
            assert arrivals.offsets[-1] == 6
            assert arrivals.at_s(6) >= arrivals.head_s >= arrivals.sent_s
        assert meeting.accepted_count == 1

    drive(answering(answer, answer, answer), scenario)


def test_a_body_without_length_ends_with_its_connection(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        assert (await meeting.client.get(meeting.url)).content == b"to the end"
        assert meeting.transport.open_count == 0

    drive(closing(b"HTTP/1.1 200 OK\r\n\r\nto the end"), scenario)


@pytest.mark.parametrize(
    ("method", "answer"),
    [("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"), ("GET", b"HTTP/1.1 204 No Content\r\n\r\n")],
)
def test_a_response_without_body_is_complete_at_its_head(drive: Drive, method: str, answer: bytes) -> None:
    async def scenario(meeting: Meeting) -> None:
        for _ in range(2):
            assert (await meeting.client.request(method, meeting.url)).content == b""
        assert meeting.accepted_count == 1

    drive(answering(answer, answer), scenario)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more",
    ],
)
def test_a_connection_that_must_not_be_used_again_is_not(drive: Drive, answer: bytes) -> None:
    async def scenario(meeting: Meeting) -> None:
        assert (await meeting.client.get(meeting.url)).content == b"ok"
        assert meeting.transport.open_count == 0

    drive(answering(answer), scenario)


def test_a_pre_encoded_body_and_its_headers_pass_untouched(drive: Drive) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def scenario(meeting: Meeting) -> None:
        await meeting.client.post(meeting.url + "?a=%2F", content=bytes(range(256)), headers={"X-Case": "Kept"})

    drive(handler, scenario)
    head, body = seen[0]
    assert body == bytes(range(256))
    assert head.startswith(b"POST /x?a=%2F HTTP/1.1\r\n")
    assert b"X-Case: Kept\r\n" in head


def test_a_header_with_a_line_break_is_refused(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        with pytest.raises(httpx.LocalProtocolError):
            await meeting.client.get(meeting.url, headers={"x": "a\r\nEvil: 1"})
        assert meeting.accepted_count == 0

    drive(answering(), scenario)


@pytest.mark.parametrize("kernel_stamps", [True, False])
def test_arrivals_are_when_the_bytes_came_not_when_they_were_read(drive: Drive, kernel_stamps: bool) -> None:
    """The loop sleeps through the arrival: only the kernel knows when it was."""
    sent_s: list[float] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED)
        await asyncio.sleep(0.05)
        sent_s.append(time.monotonic())
        writer.write(chunk(b"event") + b"0\r\n\r\n")
        await asyncio.sleep(0)
        time.sleep(0.1)  # noqa: ASYNC251  # the loop is busy: nobody reads

    async def scenario(meeting: Meeting) -> Arrivals:
        response = await meeting.client.get(meeting.url)
        assert response.content == b"event"
        arrivals = response.extensions["arrivals"]
        assert isinstance(arrivals, Arrivals)
        return arrivals

    arrivals = drive(handler, scenario, kernel_stamps=kernel_stamps)
    late_s = arrivals.at_s(5) - sent_s[0]
    if kernel_stamps and sys.platform == "linux":
        assert (arrivals.clock, arrivals.loop_count, arrivals.stepped) == ("kernel", 0, False)
        assert -0.001 < late_s < 0.05
    else:
        assert arrivals.clock == "loop"
        assert 0 <= late_s < 1.0


def test_tls_is_stamped_by_the_loop(drive: Drive, tls_contexts: Any) -> None:
    async def scenario(meeting: Meeting) -> None:
        for _ in range(2):
            response = await meeting.client.post(meeting.url, content=b"{}")
            assert response.content == b"onetwo"
            assert response.extensions["arrivals"].clock == "loop"
        assert meeting.accepted_count == 1

    drive(answering(BODIES["chunked"], BODIES["chunked"]), scenario, tls=tls_contexts)


def test_a_certificate_nobody_vouches_for_is_a_connect_error(drive: Drive, tls_contexts: Any) -> None:
    async def scenario(meeting: Meeting) -> None:
        stranger = FastTransport()
        async with httpx.AsyncClient(transport=stranger, trust_env=False) as client:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await client.get(meeting.url)

    drive(answering(), scenario, tls=tls_contexts)


def test_preopened_connections_are_used(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        await meeting.transport.preopen(meeting.url, 5)
        assert meeting.transport.open_count == 5
        await asyncio.gather(*(meeting.client.get(meeting.url) for _ in range(5)))
        assert (meeting.transport.open_count, meeting.accepted_count) == (5, 5)
        await meeting.transport.preopen(meeting.url, 3)
        assert meeting.transport.open_count == 5

    drive(answering(BODIES["chunked"]), scenario)


def test_a_kept_connection_that_the_server_closed_is_replaced(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        for pause_s in (0.05, 0.0, 0.0):
            assert (await meeting.client.get(meeting.url)).content == b"ok"
            await asyncio.sleep(pause_s)
        assert meeting.accepted_count == 3

    drive(closing(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), scenario)


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


def test_an_answer_before_the_request_is_sent_whole_is_read(drive: Drive) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await writer.drain()
        await asyncio.sleep(0.2)

    async def scenario(meeting: Meeting) -> None:
        response = await meeting.client.post(meeting.url, content=b"x" * (32 << 20))
        assert (response.status_code, response.content) == (413, b"big")
        assert meeting.transport.open_count == 0

    drive(handler, scenario)


@pytest.mark.parametrize("kernel_stamps", [True, False])
def test_a_slow_consumer_slows_the_server(drive: Drive, kernel_stamps: bool) -> None:
    sent_bytes = 0
    whole_bytes = 64 << 20

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent_bytes
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % whole_bytes)
        for _ in range(64):
            writer.write(b"x" * (1 << 20))
            await writer.drain()
            sent_bytes += 1 << 20

    async def scenario(meeting: Meeting) -> None:
        got_bytes = 0
        async with meeting.client.stream("GET", meeting.url, timeout=httpx.Timeout(0.2)) as response:
            await asyncio.sleep(0.5)  # longer than the read limit, which does not run while the consumer is the slow one
            assert sent_bytes < whole_bytes // 2
            async for block in response.aiter_raw():
                got_bytes += len(block)
        assert got_bytes == whole_bytes

    drive(handler, scenario, kernel_stamps=kernel_stamps)


@pytest.mark.parametrize(("wake_bytes", "blocks"), [(1, 3), (WHOLE_BODY, 1)])
def test_the_consumer_is_woken_as_often_as_it_asks_and_the_stamps_are_the_same(
    drive: Drive, wake_bytes: int, blocks: int
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED)
        for _ in range(3):
            await asyncio.sleep(0.05)
            writer.write(chunk(b"data: x\n\n"))
        writer.write(b"0\r\n\r\n")
        await reader.read()

    async def scenario(meeting: Meeting) -> None:
        got = []
        async with meeting.client.stream(
            "GET", meeting.url, extensions=request_extensions(wake_bytes=wake_bytes)
        ) as response:
            async for block in response.aiter_raw():
                got.append(block)
        assert (len(got), b"".join(got)) == (blocks, b"data: x\n\n" * 3)
        arrivals = response.extensions["arrivals"]
        stamps = [arrivals.at_s(end) for end in (9, 18, 27)]
        assert all(0.04 < later - earlier < 0.5 for earlier, later in itertools.pairwise(stamps))

    drive(handler, scenario)


@pytest.mark.parametrize("wake_bytes", [1, WHOLE_BODY])
def test_a_body_longer_than_allowed_is_refused(drive: Drive, wake_bytes: int) -> None:
    extensions = request_extensions(max_body_bytes=100, wake_bytes=wake_bytes)

    async def scenario(meeting: Meeting) -> None:
        with pytest.raises(httpx.RemoteProtocolError, match="longer than 100 bytes"):
            await meeting.client.get(meeting.url, extensions=extensions)

    drive(endless, scenario)


def test_many_streams_at_once(drive: Drive) -> None:
    raise_file_limit(1024)

    async def scenario(meeting: Meeting) -> None:
        responses = await asyncio.gather(*(meeting.client.post(meeting.url, content=b"{}") for _ in range(128)))
        assert {response.content for response in responses} == {b"onetwo"}

    drive(answering(BODIES["chunked"]), scenario)


def test_a_proxy_is_noted_and_not_used() -> None:
    assert proxy_note({}) is None
    note = proxy_note({"https_proxy": "http://proxy:3128", "HTTP_PROXY": "http://proxy:3128"})
    assert note == "HTTP_PROXY and HTTPS_PROXY is set; the load client connects directly and does not use it."
