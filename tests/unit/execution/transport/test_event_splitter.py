"""Server-sent events: however a body is cut, the same events with the arrival of their last byte."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbench.execution.transport import Arrivals, Blocks, EventSplitter
from tests.unit.execution.transport.bed import Drive, Meeting, read_request

BODIES = {
    "plain": (b'data: {"a":1}\n\ndata: [DONE]\n\n', [b'{"a":1}', b"[DONE]"]),
    "without a space": (b"data:x\n\ndata:  y\n\n", [b"x", b" y"]),
    "CRLF": (b"data: x\r\n\r\ndata: y\r\n\r\n", [b"x", b"y"]),
    "CR": (b"data: x\r\rdata: y\r\r:\n", [b"x", b"y"]),
    "mixed ends": (b"data: x\r\n\ndata: y\n\r\ndata: z\n\n", [b"x", b"y", b"z"]),
    "comments and keep-alives": (b": ping\n\n:\ndata: x\n\n\n\n: bye\n\n", [b"x"]),
    "several data lines": (b"data: a\ndata:\ndata: b\n\n", [b"a\n\nb"]),
    "other fields": (b"event: delta\nid: 7\nretry: 10\ndata: x\n\n", [b"x"]),
    "byte order mark": (b"\xef\xbb\xbfdata: x\n\n", [b"x"]),
    "empty": (b"", []),
    "data line without colon": (b"data\n\n", [b""]),
    "empty data lines": (b"data\ndata:\ndata:  two\n\n", [b"\n\n two"]),
    "blank lines around": (b"\n\n\ndata: x\n\n\n\n", [b"x"]),
    "letters of several bytes": ("\ufeffdata: é€\U0001f600\n\n".encode(), ["é€\U0001f600".encode()]),
}


def split(body: bytes, cuts: list[int]) -> tuple[list[tuple[bytes, float, bytes]], EventSplitter]:
    """Feeds the pieces between the cuts; piece i arrives at second i."""
    arrivals = Arrivals()
    splitter = EventSplitter(arrivals)
    events = []
    edges = [0, *cuts, len(body)]
    for second, (begin, end) in enumerate(itertools.pairwise(edges)):
        arrivals.stamps_s.append(second)
        arrivals.offsets.append(end)
        events += [(event.data, event.at_s, event.name) for event in splitter.feed(body[begin:end])]
    return events, splitter


@pytest.mark.parametrize(("body", "expected"), BODIES.values(), ids=BODIES.keys())
def test_every_pair_of_cuts_gives_the_same_events(body: bytes, expected: list[bytes]) -> None:
    for first in range(len(body) + 1):
        for second in range(first, len(body) + 1):
            events, splitter = split(body, [first, second])
            assert [data for data, _, _ in events] == expected
            assert (splitter.unfinished, splitter.garbage_line_count) == (b"", 0)


def reference(body: bytes) -> list[tuple[bytes, int, bytes]]:
    """Line by line, as the standard says: data, offset behind the event's last byte, name."""
    events, data, name, position = [], [], b"", 0
    for line in body.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True):
        position += len(line)
        bare = line.rstrip(b"\r\n")
        if bare == line:
            break
        field, _, value = bare.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
        elif not bare:
            if data:
                events.append((b"\n".join(data), position + len(body) - len(body.removeprefix(b"\xef\xbb\xbf")), name))
            data, name = [], b""
    return events


LINES = st.sampled_from(
    [b"data: x", b"data:y", b"data", b": c", b"event: e", b"id: 1", b"", b"", b"junk", b"\xff\xfe", b"da"]
)
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])


@st.composite
def cut_bodies(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    lines = draw(st.lists(st.tuples(LINES, ENDS), max_size=12))
    body = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"".join(line + end for line, end in lines) + b":\n"
    cuts = draw(st.lists(st.integers(0, len(body)), max_size=6).map(sorted))
    return body, cuts


@given(cut_bodies())
def test_events_and_arrivals_are_those_of_the_standard(body_and_cuts: tuple[bytes, list[int]]) -> None:
    body, cuts = body_and_cuts
    events, _ = split(body, cuts)
    edges = [*cuts, len(body)]
    expected = [(data, next(i for i, edge in enumerate(edges) if edge >= end), name) for data, end, name in reference(body)]
    assert events == expected


@given(st.binary(max_size=200), st.integers(0, 200))
def test_garbage_never_raises_and_the_cut_does_not_matter(body: bytes, cut: int) -> None:
    whole, _ = split(body, [])
    parts, _ = split(body, [min(cut, len(body))])
    assert [data for data, _, _ in parts] == [data for data, _, _ in whole]


def test_a_half_line_and_garbage_are_seen() -> None:
    _, splitter = split(b'data: x\n\ndata: {"a', [])
    assert splitter.unfinished == b'data: {"a'
    _, splitter = split(b"<html>\n<body>\n\n", [])
    assert splitter.garbage_line_count == 2


@pytest.mark.parametrize("tail", [b"data: b", b"data: b\n", b"data: b\r\n", b"data: b\r"])
def test_the_last_event_may_lack_its_blank_line(tail: bytes) -> None:
    events, splitter = split(b"data: a\n\n" + tail, [9])
    assert [data for data, _, _ in events] == [b"a"]
    assert [(event.data, event.at_s) for event in splitter.end()] == [(b"b", 1)]
    assert (splitter.end(), splitter.unfinished) == ([], b"")


@given(cut_bodies())
def test_the_end_adds_only_what_was_unfinished(body_and_cuts: tuple[bytes, list[int]]) -> None:
    body, cuts = body_and_cuts
    _, splitter = split(body + b"data: z", cuts)
    assert [event.data for event in splitter.end()][-1].endswith(b"z")
    assert split(body + b"\n\n", cuts)[1].end() == []


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specbench.execution.transport.sse._MAX_EVENT_BYTES", 10)
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        split(b"data: xxxxxxxxxxxxxx", [])


STREAMS: dict[str, tuple[bytes, bytes, str]] = {
    "half line": (b"", b'data: x\n\ndata: {"a', "ended inside an event"),
    "a page": (b"", b"<html>\n\n", "no server-sent event"),
    "gzip": (b"Content-Encoding: gzip\r\n", b"\x1f\x8b", "gzip although"),
}


@pytest.mark.parametrize(("header", "body", "words"), STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_that_is_no_whole_sse_is_one_error(drive: Drive, header: bytes, body: bytes, words: str) -> None:
    import httpx

    from specbench.execution.transport import EventStream

    async def handler(reader: Any, writer: Any) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (header, len(body), body))
        await reader.read()

    async def scenario(meeting: Meeting) -> None:
        async with meeting.client.stream("GET", meeting.url) as response:
            with pytest.raises((httpx.RemoteProtocolError, httpx.DecodingError), match=words):
                async for _ in EventStream(response):
                    pass

    drive(handler, scenario)


def test_events_come_with_their_arrivals(drive: Drive) -> None:
    from specbench.execution.transport import EventStream

    async def handler(reader: Any, writer: Any) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\ndata: a\n\ndata: b\n\ndata: [DONE]\n")

    async def scenario(meeting: Meeting) -> None:
        got = []
        async with meeting.client.stream("GET", meeting.url) as response:
            stream = EventStream(response)
            async for events in stream:
                got += events
        assert [event.data for event in got] == [b"a", b"b"]
        assert got[0].at_s >= stream.arrivals.sent_s

    drive(handler, scenario)


PIECES = st.sampled_from(
    [b"data: {}\n\n", b"data: abc\n\n", b"data: [DONE]\n\n", b": c\n\n", b"data: a\r\n\r\n", b"data: a\n", b"\n", b"x"]
)


@given(st.lists(PIECES, max_size=8), st.data())
def test_blocks_that_are_events_are_read_as_the_splitter_reads_them(blocks: list[bytes], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(blocks)), max_size=4)))
    arrivals = Arrivals()
    marks = [*cuts, len(blocks)]
    arrivals.stamps_s.extend(float(place) for place in range(len(marks)))
    plain = Blocks(list(blocks), marks).plain_events(arrivals)
    body = Blocks(list(blocks), marks).joined(arrivals)
    splitter = EventSplitter(arrivals)
    split = splitter.feed(body) + splitter.end()
    if plain is not None:
        assert plain == split
    elif all(block in (b"data: {}\n\n", b"data: abc\n\n", b"data: [DONE]\n\n") for block in blocks):
        pytest.fail("plain events were not read as such")
