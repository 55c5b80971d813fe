"""Answers that look good and are not, and what is too much: a failed record with its cause."""

import asyncio

import pytest

from specbench.errors import LaunchError
from specbench.execution.client import open_client
from tests.unit.execution.test_client import GOOD, HEAD, body_server, chunked, event, record


def events(*datas: bytes) -> bytes:
    return b"".join(chunked(b"data: " + data + b"\n\n") for data in datas)


SECOND = HEAD + events(b'{"choices": [{"delta": {"content": "x"}}], "usage": {"completion_tokens": 100}}') + chunked(b"")


@pytest.mark.parametrize("cut", [None, 30, len(HEAD) + 5])
def test_what_follows_a_whole_answer_is_not_part_of_it(cut: int | None) -> None:
    whole_answer = HEAD + b"".join(chunked(piece) for piece in GOOD) + chunked(b"")
    writes = [whole_answer + SECOND] if cut is None else [whole_answer + SECOND[:cut], SECOND[cut:]]
    one = record(body_server(*writes, pause_s=0.02))
    assert (one.error, one.output_text, one.output_tokens) == (None, "ab", 5)


def test_a_nested_event_is_a_failed_record() -> None:
    one = record(body_server(HEAD + events(b"[" * 100_000 + b"]" * 100_000) + chunked(b"")))
    assert one.error is not None
    assert "an event that can't be read" in one.error


def test_a_nested_error_body_is_still_its_status() -> None:
    body = b'{"error":' * 5000
    one = record(body_server(b"HTTP/1.1 500 X\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)))
    assert one.error is not None
    assert one.error.startswith("HTTP 500: ")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.1 101 S\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", "wants to switch to another protocol"),
        (b"HTTP/1.1 307 T\r\nlocation: http://else/where\r\ncontent-length: 0\r\n\r\n", "it points to http://else/where"),
        (HEAD + events(b'{"choices": [{"delta": {"role": "assistant"}}]}', b"[DONE]") + chunked(b""), "without a token"),
        (HEAD + events(b'{"error": ""}') + chunked(b""), "the server reported: an error without a message"),
        (HEAD + chunked(b'event: error\ndata: {"message": "boom"}\n\n') + chunked(b""), "the server reported: boom"),
        (
            HEAD + events(b'{"choices": [{"delta": {}, "finish_reason": "error"}]}') + chunked(b""),
            "ended the request by an error",
        ),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 31\r\n\r\n{"error": {"message": "boom!"}}', "held no events: boom!"),
        (HEAD + b"".join(map(chunked, (event("a", 5), event("b", 3, "stop")))) + chunked(b""), "falls from 5 to 3"),
        (HEAD.replace(b"chunked", b"gzip, chunked") + chunked(b"x") + chunked(b""), "compressed (gzip)"),
    ],
)
def test_answers_that_look_good_and_are_not(answer: bytes, sentence: str) -> None:
    one = record(body_server(answer))
    assert one.error is not None
    assert sentence in one.error


def test_a_count_that_tokens_follow_is_no_total() -> None:
    body = b"".join(map(chunked, (event("a", 1), event("b", 10**15), event("c", None, "stop"))))
    one = record(body_server(HEAD + body + chunked(b"")))
    assert (one.error, one.output_tokens, one.token_source, one.chunk_tokens) == (None, None, "none", ())


def test_an_empty_content_encoding_is_none() -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding:\r\n\r\n")
    assert record(body_server(head, *(chunked(piece) for piece in GOOD), chunked(b""))).error is None


def test_trailers_without_end_are_refused() -> None:
    trailers = [b"x: " + b"y" * 50_000 + b"\r\n"] * 10
    one = record(body_server(HEAD + chunked(event("a", 1, "stop")), b"0\r\n", *trailers, pause_s=0.01), timeout_s=10.0)
    assert one.error is not None
    assert "not valid HTTP/1.1" in one.error
    assert one.done_s < 5


def test_more_streams_than_files_are_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specbench.execution.client.raise_file_limit", lambda count: 300)

    async def ask_for(count: int, demanded: bool) -> None:
        async with open_client("http://127.0.0.1:1") as client:
            client.allow(count, demanded)

    asyncio.run(ask_for(40, demanded=True))
    asyncio.run(ask_for(1000, demanded=False))
    with pytest.raises(
        LaunchError, match=r"1000 streams need 1256 open files and this process may open 300; .*ulimit -n 1256"
    ):
        asyncio.run(ask_for(1000, demanded=True))


def test_an_event_beyond_the_limit_is_refused_also_when_it_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specbench.execution.transport.sse._MAX_EVENT_BYTES", 70_000)
    huge = event("x" * 150_000, 3, "stop")
    one = record(body_server(HEAD + chunked(event("a", 1)) + chunked(huge) + chunked(b"")))
    assert one.error is not None
    assert "longer than 70000 bytes" in one.error
    assert one.output_text == "a"
