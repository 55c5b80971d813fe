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
    proxy_note,
    raise_file_limit,
    request_extensions,
)
from tests.unit.execution.transport.bed import CHUNKED, Drive, Meeting, answering, chunk, closing, read_request

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


def test_preopened_connections_are_used(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        await meeting.transport.preopen(meeting.url, 5)
        assert meeting.transport.open_count == 5
        await asyncio.gather(*(meeting.client.get(meeting.url) for _ in range(5)))
        assert (meeting.transport.open_count, meeting.accepted_count) == (5, 5)
        await meeting.transport.preopen(meeting.url, 3)
        assert meeting.transport.open_count == 5

    drive(answering(BODIES["chunked"]), scenario)


def test_a_connection_that_waited_long_is_not_used_again(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(meeting: Meeting) -> None:
        await meeting.transport.preopen(meeting.url, 3)
        monkeypatch.setattr("specbench.execution.transport.pool._KEPT_S", 0.0)
        await meeting.transport.preopen(meeting.url, 2)
        assert meeting.transport.open_count == 2
        await meeting.client.get(meeting.url)
        assert meeting.transport.open_count == 1

    drive(answering(BODIES["chunked"]), scenario)


def test_a_kept_connection_that_the_server_closed_is_replaced(drive: Drive) -> None:
    async def scenario(meeting: Meeting) -> None:
        for pause_s in (0.05, 0.0, 0.0):
            assert (await meeting.client.get(meeting.url)).content == b"ok"
            await asyncio.sleep(pause_s)
        assert meeting.accepted_count == 3

    drive(closing(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), scenario)


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
