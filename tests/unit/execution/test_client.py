"""One request against a raw server that does everything wrong: a failed record, never an exception."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from specbench.dialects import ChunkFacts, HttpRequest
from specbench.dialects.sglang_http import ChatReader
from specbench.execution.answers import Decoding, chunk_counts, record_of
from specbench.execution.client import Exchange, error_sentence, exchange, open_client, prepare
from specbench.execution.transport import Prepared
from specbench.execution.transport.links import has_kernel_stamps
from specbench.records import RequestRecord

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
REQUEST = HttpRequest(path="/v1/chat/completions", body={"stream": True})
BLANK = RequestRecord(
    request_index=0, prompt_id="p", category="c", workload="w", concurrency=1, due_s=0.0, sent_s=0.0, done_s=0.0
)


def event(text: str, total: int | None = None, finish: str | None = None) -> bytes:
    value: dict[str, object] = {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}
    if total is not None:
        value["usage"] = {"prompt_tokens": 4, "completion_tokens": total}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


GOOD = [event("", 0), event("a", 2), event("b", 5, "stop"), b"data: [DONE]\n\n"]


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def body_server(*writes: bytes, pause_s: float = 0.0) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for data in writes:
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return talk


async def ask(talk: Talk, timeout_s: float = 5.0) -> Exchange:
    talking: list[asyncio.Task[None]] = []

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            writer.close()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.append(asyncio.create_task(closing(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_client(f"http://127.0.0.1:{port}") as client:
        seen = await exchange(client, prepare(client, REQUEST, timeout_s))
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        await asyncio.sleep(0)
    return seen


def record(talk: Talk, timeout_s: float = 5.0) -> RequestRecord:
    seen = asyncio.run(ask(talk, timeout_s))
    return read(seen, seen.sent_s)


def read(seen: Exchange, zero_s: float = 0.0) -> RequestRecord:
    return record_of(BLANK, seen, Decoding(seen, ChatReader()).whole(), None, zero_s)


def test_a_good_answer() -> None:
    one = record(body_server(HEAD, *(chunked(piece) for piece in GOOD), chunked(b""), pause_s=0.02))
    assert one.error is None
    assert (one.output_text, one.chunk_tokens, one.output_tokens, one.prompt_tokens) == ("ab", (2, 3), 5, 4)
    assert (one.token_source, one.finish_reason, one.status_code) == ("usage_per_chunk", "stop", 200)
    assert len(one.chunk_s) == 2
    assert 0 < one.chunk_s[0] < one.chunk_s[1] < one.done_s
    assert one.chunk_s[1] - one.chunk_s[0] > 0.015


async def mocked(content: AsyncIterator[bytes]) -> Exchange:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=content))
    async with open_client("http://x", transport) as client:
        return await exchange(client, prepare(client, REQUEST, 5.0))


def test_a_stream_split_at_every_byte_reads_the_same() -> None:
    body = b"".join(GOOD).replace(b"\n\n", b"\r\n\r\n")

    async def content(cut: int) -> AsyncIterator[bytes]:
        yield body[:cut]
        yield body[cut:]

    for cut in range(1, len(body)):
        one = read(asyncio.run(mocked(content(cut))))
        assert (one.error, one.output_text, one.chunk_tokens, one.output_tokens) == (None, "ab", (2, 3), 5)


def test_a_stream_cut_at_any_byte_is_a_failed_record() -> None:
    body = b"".join(GOOD)

    async def content(cut: int) -> AsyncIterator[bytes]:
        yield body[:cut]
        raise httpx.ReadError("reset")

    for cut in range(len(body)):
        one = read(asyncio.run(mocked(content(cut))))
        assert one.error == "the connection broke: ReadError (reset)"
        assert one.output_text in ("", "a", "ab")


def test_no_count_means_none_is_guessed() -> None:
    one = record(body_server(HEAD, chunked(event("a"), event("b", None, "stop"), b"data: [DONE]\n\n"), chunked(b"")))
    assert (one.error, one.token_source, one.output_tokens, one.chunk_tokens) == (None, "none", None, ())
    assert len(one.chunk_s) == 2


def test_a_count_at_the_end_only() -> None:
    last = b'data: {"choices": [], "usage": {"completion_tokens": 9}}\n\n'
    one = record(body_server(HEAD, chunked(event("a"), event("b", None, "stop"), last), chunked(b"")))
    assert (one.token_source, one.output_tokens, one.chunk_tokens) == ("usage_at_end", 9, ())


@pytest.mark.parametrize(
    ("talk", "sentence"),
    [
        (body_server(HEAD, chunked(event("a", 1))), "the connection broke"),
        (body_server(), "the connection broke"),
        (body_server(b"\x00\x01nonsense\r\n\r\n"), "the connection broke"),
        (body_server(HEAD, chunked(b"data: {not json}\n\n"), chunked(b"")), "an event that can't be read"),
        (body_server(HEAD, chunked(b"data: \xff\xfe\n\n"), chunked(b"")), "an event that can't be read"),
        (body_server(HEAD, chunked(b"data: 7\n\n"), chunked(b"")), "an event that can't be read"),
        (body_server(HEAD, chunked(b"<html>hello</html>"), chunked(b"")), "the answer held no events"),
        (body_server(HEAD, chunked(event("a", 1)), chunked(b"")), "without a finish reason"),
        (body_server(HEAD, chunked(b'data: {"error": {"message": "out of\\nmemory"}}\n\n'), chunked(b"")), "out of memory"),
    ],
)
def test_bad_answers(talk: Talk, sentence: str) -> None:
    one = record(talk)
    assert one.error is not None
    assert sentence in one.error
    assert "\n" not in one.error


def test_what_came_before_garbage_is_kept() -> None:
    one = record(body_server(HEAD, chunked(event("a", 2), b"data: {\n\n", event("b", 5, "stop")), chunked(b"")))
    assert one.error is not None
    assert (one.output_text, one.output_tokens) == ("a", 2)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error": {"message": "too long", "type": "x"}}', "too long"),
        (b'{"object": "error", "message": "no such model"}', "no such model"),
        (b'{"detail": [{"msg": "field required"}]}', "field required"),
        (b'{"error": "plain"}', "plain"),
        (b"", "no message"),
        (b"<html>\n  Bad   Gateway</html>", "<html> Bad Gateway</html>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_an_http_error_is_a_sentence(body: bytes, sentence: str) -> None:
    assert sentence in error_sentence(body)
    head = b"HTTP/1.1 400 Bad\r\ncontent-length: %d\r\n\r\n" % len(body)
    one = record(body_server(head + body))
    assert one.status_code == 400
    assert one.error == f"HTTP 400: {error_sentence(body)}"
    assert one.chunk_s == ()


@pytest.mark.parametrize(
    ("wait", "asked"), [(b"7", "retry after 7 s"), (b"Fri, 31 Dec 2027 23:59:59 GMT", "retry after Fri, 31 Dec")]
)
def test_a_busy_servers_wish_is_in_the_sentence(wait: bytes, asked: str) -> None:
    head = b"HTTP/1.1 429 Too Many\r\nretry-after: " + wait + b"\r\ncontent-length: 20\r\n\r\n"
    one = record(body_server(head + b'{"error": "too fast"}'[:20]))
    assert one.status_code == 429
    assert one.error is not None
    assert one.error.startswith("HTTP 429: ")
    assert asked in one.error


def test_a_compressed_answer_is_refused() -> None:
    head = HEAD.replace(b"transfer", b"content-encoding: gzip\r\ntransfer")
    assert record(body_server(head, chunked(b"\x1f\x8b"), chunked(b""))).error == (
        "the answer is compressed (gzip) although the request forbids it"
    )


def test_lines_that_belong_to_no_event_are_a_failure() -> None:
    one = record(body_server(HEAD, chunked(event("a", 1), b"<html>\n\n", event("b", 2, "stop")), chunked(b"")))
    assert one.error == "the answer holds lines that are no server-sent event (1)"
    assert one.output_text == "ab"


def test_the_clock_that_stamped_is_in_the_record() -> None:
    expected = "kernel" if has_kernel_stamps() else "loop"
    assert record(body_server(HEAD, b"", *(chunked(piece) for piece in GOOD), chunked(b""), pause_s=0.02)).clock == expected
    assert read(asyncio.run(mocked(whole()))).clock == "loop"


def test_a_clock_that_was_set_is_flagged() -> None:
    seen = asyncio.run(mocked(whole()))
    assert not read(seen).stepped
    seen.arrivals.stepped = True
    assert read(seen).stepped


async def whole() -> AsyncIterator[bytes]:
    yield b"".join(GOOD)


def test_a_silent_server_meets_the_limit() -> None:
    one = record(body_server(HEAD + chunked(event("a", 1)), pause_s=2.0), timeout_s=0.2)
    assert one.error == "no end of the answer after 0.2 s"
    assert one.output_text == "a"
    assert one.done_s < 1.5


def test_nobody_listens() -> None:
    async def nobody() -> Exchange:
        server = await asyncio.start_server(body_server(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        async with open_client(f"http://127.0.0.1:{port}") as client:
            return await exchange(client, prepare(client, REQUEST, 5.0))

    seen = asyncio.run(nobody())
    assert seen.error is not None
    assert seen.error.startswith("no connection: ")


def test_a_stopped_load_is_told_not_raised() -> None:
    async def stopped() -> Exchange:
        task = asyncio.create_task(ask(body_server(HEAD + chunked(event("a", 1)), pause_s=5.0)))
        await asyncio.sleep(0.2)
        task.cancel()
        return await task

    seen = asyncio.run(stopped())
    assert seen.cancelled
    assert read(seen).output_text == "a"


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert record(body_server(HEAD, chunked(*GOOD), chunked(b""))).error is None


@pytest.mark.parametrize(
    ("totals", "counts"),
    [((1, 3, 3), (1, 2, 0)), ((1, None, 3), ()), ((3, 2), ()), ((), ())],
)
def test_counts_per_chunk(totals: tuple[int | None, ...], counts: tuple[int, ...]) -> None:
    assert chunk_counts([ChunkFacts(output_tokens=total) for total in totals]) == counts


def test_a_request_made_from_the_shared_head_is_the_one_that_httpx_builds() -> None:
    def parts(message: bytes) -> tuple[list[bytes], bytes]:
        head, _, body = message.partition(b"\r\n\r\n")
        return sorted(head.split(b"\r\n")), body

    async def check(size: int) -> None:
        async with open_client("http://127.0.0.1:1") as client:
            made = prepare(client, HttpRequest(path="/v1/x", body={"n": size * "x"}), 5.0)
            built = Prepared.of(client.request_of("/v1/x", b'{"n":"%b"}' % (size * b"x"), 5.0))
            assert isinstance(made, Prepared)
            assert parts(made.message) == parts(built.message)
            assert made._replace(message=b"") == built._replace(message=b"")

    for size in (0, 10, 1000):
        asyncio.run(check(size))
