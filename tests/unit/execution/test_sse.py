"""Events out of bytes, however they were split."""

import pytest

from specbench.execution.sse import SseSplitter, events

STREAMS = [
    (b'data: {"a": 1}\n\ndata: [DONE]\n\n', [b'{"a": 1}', b"[DONE]"]),
    (b"data:x\r\n\r\ndata: y\r\n\r\n", [b"x", b"y"]),
    (b"data: x\r\ndata: y\r\n\r\n", [b"x\ny"]),
    (b"data: x\rdata: y\r\rdata:z\r\r", [b"x\ny", b"z"]),
    (b": comment\nevent: m\nid: 1\nretry: 5\n\ndata: x\n\n", [b"x"]),
    ("\ufeffdata: é€\U0001f600\n\n".encode(), ["é€\U0001f600".encode()]),
    (b"data\ndata:\ndata:  two\n\n", [b"\n\n two"]),
    (b"\n\n\ndata: x\n\n\n\n", [b"x"]),
    (b"garbage \x00\xff\ndatax: no\n\ndata: ok\n\n", [b"ok"]),
]


@pytest.mark.parametrize(("stream", "wanted"), STREAMS)
def test_one_split_at_every_byte(stream: bytes, wanted: list[bytes]) -> None:
    for cut in range(len(stream) + 1):
        splitter = SseSplitter()
        assert splitter.feed(stream[:cut]) + splitter.feed(stream[cut:]) + splitter.end() == wanted, cut


@pytest.mark.parametrize(("stream", "wanted"), STREAMS)
def test_byte_by_byte(stream: bytes, wanted: list[bytes]) -> None:
    splitter = SseSplitter()
    found = [payload for position in range(len(stream)) for payload in splitter.feed(stream[position : position + 1])]
    assert found + splitter.end() == wanted


def test_an_event_is_stamped_by_the_read_that_completed_it() -> None:
    reads = [(1.0, b"data: a\n\nda"), (2.0, b"ta: b"), (3.0, b"\n"), (4.0, b"\ndata: c\n\n")]
    assert list(events(reads, closed_well=True)) == [(1.0, b"a"), (4.0, b"b"), (4.0, b"c")]


def test_an_unfinished_event_counts_only_when_the_stream_closed_well() -> None:
    reads = [(1.0, b"data: a\n\ndata: [DONE]")]
    assert list(events(reads, closed_well=True)) == [(1.0, b"a"), (1.0, b"[DONE]")]
    assert list(events(reads, closed_well=False)) == [(1.0, b"a")]
