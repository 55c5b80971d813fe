"""The exchange alone: any bytes, cut anywhere."""

import asyncio
import itertools
import math

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbench.execution.transport.arrivals import ClockBridge
from specbench.execution.transport.exchange import Exchange
from specbench.execution.transport.wire import Limits

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = b"data: a\n\n" * 3
RESPONSES = {
    "chunked": HEAD + b"9\r\ndata: a\n\n\r\n12;x=1\r\ndata: a\n\ndata: a\n\n\r\n0\r\n\r\n",
    "trailer": HEAD + b"1b\r\n" + BODY + b"\r\n0\r\nx: y\r\n\r\n",
    "content-length": b"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n" + BODY,
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n" + BODY,
}


class FakeLink:
    def __init__(self) -> None:
        self.released: list[bool] = []

    def attach(self, exchange: Exchange) -> None: ...
    def send(self, message: bytes) -> None: ...
    def unsent_bytes(self) -> int:
        return 0

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def release(self, reusable: bool) -> None:
        self.released.append(reusable)


async def feed(pieces: list[bytes], wake_bytes: int = 1) -> tuple[Exchange, FakeLink]:
    exchange, link = Exchange(Limits(wake_bytes=wake_bytes), "POST", math.inf), FakeLink()
    exchange.start(link, b"")
    for second, piece in enumerate(pieces):
        if not link.released:
            exchange.take(piece, second)
    return exchange, link


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES.keys())
def test_every_pair_of_cuts_gives_the_same_body_and_stamps(response: bytes) -> None:
    async def scenario() -> None:
        for first in range(1, len(response) - 1):
            for second in range(first + 1, len(response)):
                exchange, link = await feed([response[:first], response[first:second], response[second:]])
                assert link.released == [True]
                assert await exchange.block() == BODY
                assert await exchange.block() == b""
                assert exchange.arrivals.offsets[-1] == len(BODY)
                assert exchange.arrivals.at_s(1) <= exchange.arrivals.at_s(len(BODY)) <= 2

    asyncio.run(scenario())


def test_a_stamp_is_that_of_the_read_that_brought_the_byte() -> None:
    async def scenario() -> None:
        pieces = [HEAD, b"9\r\ndata: a", b"\n\n\r\n", b"9\r\ndata: a\n\n\r\n9\r\ndata: a\n\n\r\n0\r\n\r\n"]
        exchange, _ = await feed(pieces)
        await exchange.block()
        assert [exchange.arrivals.at_s(end) for end in (1, 7, 8, 9, 10, 27)] == [1, 1, 2, 2, 3, 3]
        assert exchange.arrivals.head_s == 0

    asyncio.run(scenario())


def test_what_came_before_a_fault_in_the_same_read_has_its_arrival() -> None:
    async def scenario() -> None:
        exchange, _ = await feed([HEAD, b"9\r\ndata: a\n\n\r\nNONSENSE", b"0\r\n\r\n"])
        with pytest.raises(httpx.RemoteProtocolError):
            await exchange.whole()
        assert exchange.abandon() == b"data: a\n\n"
        assert exchange.arrivals.at_s(9) == 1

    asyncio.run(scenario())


@given(st.binary(max_size=120), st.lists(st.integers(0, 200), max_size=4), st.sampled_from([b"", HEAD, HEAD[:-2]]))
def test_any_bytes_end_in_a_body_or_one_error(garbage: bytes, cuts: list[int], head: bytes) -> None:
    async def scenario() -> None:
        response = head + garbage
        edges = [0, *sorted(min(cut, len(response)) for cut in cuts), len(response)]
        exchange, link = await feed([response[a:b] for a, b in itertools.pairwise(edges) if a < b])
        exchange.end_of_stream()
        assert len(link.released) == 1
        try:
            await exchange.head()
            while await exchange.block():
                pass
        except httpx.RemoteProtocolError:
            assert link.released == [False]

    asyncio.run(scenario())


class Clocks:
    """A monotonic and a wall clock that a test moves."""

    def __init__(self) -> None:
        self.monotonic, self.wall = 100.0, 1_700_000_000.25

    def pass_s(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds

    def bridge(self) -> ClockBridge:
        return ClockBridge(lambda: self.monotonic, lambda: self.wall)

    def stamp(self) -> tuple[int, int]:
        return int(self.wall), round(self.wall % 1 * 1e9)


def test_a_stamp_is_converted_however_old_the_sample() -> None:
    clocks = Clocks()
    bridge = clocks.bridge()
    for passed_s in (0.0, 0.003, 0.5, 1000.0):
        clocks.pass_s(passed_s)
        assert bridge.to_monotonic_s(*clocks.stamp()) == pytest.approx(clocks.monotonic, abs=1e-6)
    assert bridge.step_count == 0


def test_a_slewed_clock_is_followed_and_is_no_step() -> None:
    clocks = Clocks()
    bridge = clocks.bridge()
    for _ in range(200):
        clocks.pass_s(0.1)
        clocks.wall += 0.1 * 500e-6
        assert bridge.to_monotonic_s(*clocks.stamp()) == pytest.approx(clocks.monotonic, abs=1e-5)
    assert bridge.step_count == 0


@pytest.mark.parametrize("step_s", [3600.0, -3600.0, 0.05, -0.05])
def test_a_clock_that_is_set_is_noticed_and_later_stamps_are_right(step_s: float) -> None:
    clocks = Clocks()
    bridge = clocks.bridge()
    clocks.pass_s(0.02)
    bridge.to_monotonic_s(*clocks.stamp())
    clocks.wall += step_s
    clocks.pass_s(0.02)
    assert bridge.to_monotonic_s(*clocks.stamp()) == pytest.approx(clocks.monotonic, abs=1e-5)
    assert bridge.step_count == 1
