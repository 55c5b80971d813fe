"""One streaming request. What arrives is stamped and kept by the transport; it is decoded when the request has ended."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import httpx
import msgspec

from specbench import clock
from specbench.dialects import HttpRequest
from specbench.errors import LaunchError
from specbench.execution.transport import (
    WHOLE_BODY,
    Arrivals,
    FastTransport,
    Prepared,
    raise_file_limit,
    request_extensions,
)
from specbench.units import Second, counted

CONNECT_TIMEOUT_S: Final = 30.0
ERROR_BODY_BYTES: Final = 64 * 1024
Outgoing = Prepared | httpx.Request
"""Ready to be sent: by our transport, or by another of httpx."""
SPARE_FILES: Final = 256
"""Open files that the process needs beside its connections."""
PREOPEN_TIMEOUT_S: Final = 5.0


class Exchange(msgspec.Struct, kw_only=True):
    """One request and everything that came back, as it came. Times are `clock.now_s()`."""

    sent_s: Second
    done_s: Second = 0.0
    """Arrival of the last byte where the answer ended well, else when it was given up."""
    body: bytes = b""
    """Of an answer that came in no blocks; see `joined`."""
    blocks: Any = None
    """`Blocks` of a body that came whole."""
    arrivals: Any = None
    """`Arrivals` of the body; None when there was no answer."""
    status_code: int | None = None
    error: str | None = None
    cancelled: bool = False
    """The load was stopped before the answer ended."""
    timed_out: bool = False
    """We gave it up after its own time limit."""

    def joined(self) -> bytes:
        """The body as one."""
        if self.blocks is not None:
            self.body, self.blocks = self.blocks.joined(self.arrivals), None
        return self.body


class LoadClient(httpx.AsyncClient):
    """httpx's client around the transport; the load's own requests are handed to `wire` directly."""

    def __init__(self, base_url: str, transport: httpx.AsyncBaseTransport | None, api_key: str | None = None) -> None:
        authorization = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.wire: httpx.AsyncBaseTransport = transport or FastTransport()
        super().__init__(
            base_url=base_url,
            transport=self.wire,
            trust_env=False,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
            headers={"Accept-Encoding": "identity", "User-Agent": "specbench"} | authorization,
        )

        self._empty_posts: dict[tuple[str, Second], Prepared] = {}

    def request_of(self, path: str, body: bytes, timeout_s: Second) -> httpx.Request:
        """As httpx builds it, with our limits. Raises httpx.InvalidURL."""
        limits = request_extensions(total_s=timeout_s, wake_bytes=WHOLE_BODY)
        headers = {"Content-Type": "application/json"}
        return self.build_request("POST", path, content=body, headers=headers, extensions=limits)

    def empty_post(self, path: str, timeout_s: Second) -> Prepared:
        """All that the requests to one path have in common: made once, for httpx's way to a request costs 100 µs."""
        key = (path, timeout_s)
        if key not in self._empty_posts:
            self._empty_posts[key] = Prepared.of(self.request_of(path, b"", timeout_s))
        return self._empty_posts[key]

    def reads_count(self) -> int:
        """Reads of the answers that are on their way; 0 through another transport than ours."""
        return self.wire.reads_count if isinstance(self.wire, FastTransport) else 0

    def allow(self, count: int, demanded: bool) -> None:
        """Lets the process hold so many connections. Raises LaunchError where the system refuses what is `demanded`."""
        needed = count + SPARE_FILES
        allowed = raise_file_limit(needed)
        if demanded and allowed < needed:
            cause = f"{counted(count, 'stream', 'needs/need')} {needed} open files and this process may open {allowed}"
            raise LaunchError("too_many_streams", f"{cause}; raise the limit with `ulimit -n {needed}`")

    async def preopen(self, count: int) -> None:
        """Opens connections ahead of the load, so that no request waits for its handshake."""
        if isinstance(self.wire, FastTransport):
            with suppress(httpx.TransportError):  # the request that then lacks one tells why
                await self.wire.preopen(self.base_url, count, timeout_s=PREOPEN_TIMEOUT_S)


def open_client(base_url: str, transport: httpx.AsyncBaseTransport | None = None, api_key: str | None = None) -> LoadClient:
    """The one place where a client is made: as many connections as there are streams, and no proxy from the environment."""
    return LoadClient(base_url, transport, api_key)


def prepare(client: LoadClient, request: HttpRequest, timeout_s: Second) -> Outgoing:
    """The request as it will be sent: what can be done before it is due. Raises httpx.InvalidURL and its like."""
    body = msgspec.json.encode(request.body)
    if not isinstance(client.wire, FastTransport):
        return client.request_of(request.path, body, timeout_s)
    return client.empty_post(request.path, timeout_s).with_body(body)


async def exchange(client: LoadClient, request: Outgoing) -> Exchange:
    """Sends and receives. Never raises: trouble is a sentence in `error`, a stopped load is `cancelled`."""
    seen = Exchange(sent_s=clock.now_s())
    try:
        if isinstance(client.wire, FastTransport) and isinstance(request, Prepared):
            await _receive(client.wire, request, seen)
        elif isinstance(request, httpx.Request):
            await _receive_by_httpx(client.wire, request, seen)
    except asyncio.CancelledError:
        seen.error, seen.cancelled = "stopped before the answer ended", True
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, RuntimeError) as error:
        seen.error = transport_sentence(error, _total_s(request))
        seen.timed_out = isinstance(error, httpx.TimeoutException)
    arrivals = seen.arrivals
    ended_well = seen.error is None and arrivals is not None and len(arrivals.stamps_s) > 0
    seen.done_s = arrivals.stamps_s[-1] if ended_well and not arrivals.stepped else clock.now_s()
    return seen


def _total_s(request: Outgoing) -> Second:
    if isinstance(request, Prepared):
        return request.limits.total_s
    total_s: Second = request.extensions["specbench"]["total_s"]
    return total_s


async def _receive(wire: FastTransport, request: Prepared, seen: Exchange) -> None:
    """The load's way: one wake-up an answer, no object of httpx."""
    going = await wire.start(request)
    seen.sent_s = going.arrivals.sent_s
    try:
        try:
            seen.blocks = await going.whole()
        except httpx.TransportError:
            if not going.was_lost_at_once:
                raise
            going = await wire.start(request, fresh=True)
            seen.blocks = await going.whole()
    except BaseException:
        seen.body = going.abandon()
        raise
    finally:
        seen.arrivals, seen.status_code = going.arrivals, going.status_code or None
    body = seen.joined() if going.status_code != 200 else b""
    seen.error = answer_sentence(going.status_code, {name.lower(): value for name, value in going.headers}, body)


async def _receive_by_httpx(wire: httpx.AsyncBaseTransport, request: httpx.Request, seen: Exchange) -> None:
    """Through any transport of httpx: its blocks are stamped here."""
    response = await wire.handle_async_request(request)
    seen.status_code, seen.arrivals = response.status_code, Arrivals()
    blocks: list[bytes] = []
    try:
        async for block in response.aiter_raw():
            blocks.append(block)
            _stamp(seen.arrivals, len(block))
    finally:
        seen.body = b"".join(blocks)
        await response.aclose()
    seen.error = answer_sentence(response.status_code, {k.lower(): v for k, v in response.headers.raw}, seen.body)


def _stamp(arrivals: Arrivals, length_bytes: int) -> None:
    """For a transport that stamps nothing itself."""
    arrivals.loop_count += 1
    arrivals.stamps_s.append(clock.now_s())
    arrivals.offsets.append((arrivals.offsets[-1] if arrivals.offsets else 0) + length_bytes)


def answer_sentence(status_code: int, headers: Mapping[bytes, bytes], body: bytes) -> str | None:
    """What is wrong with an answer as a whole; None when it is a stream to be read. Names of headers in small letters."""
    if status_code != 200:
        wait = " ".join(headers.get(b"retry-after", b"").decode("latin-1").split())[:60]
        asked = f"; it asks to retry after {wait}{' s' if wait.isdigit() else ''}" if wait else ""
        place = headers.get(b"location", b"").decode("latin-1")[:200]
        asked += f"; it points to {place}" if place else ""
        return f"HTTP {status_code}: {error_sentence(body)}{asked}"
    coding = headers.get(b"content-encoding", b"").decode("latin-1").strip().lower() or "identity"
    transfer = headers.get(b"transfer-encoding", b"").decode("latin-1").lower().split(",")
    coding = next((one for one in map(str.strip, transfer) if one not in ("", "chunked", "identity")), coding)
    return None if coding == "identity" else f"the answer is compressed ({coding[:40]}) although the request forbids it"


def transport_sentence(error: Exception, total_s: Second) -> str:
    """What became of a connection."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {min(CONNECT_TIMEOUT_S, total_s):g} s"
    if isinstance(error, httpx.TimeoutException):
        return f"no end of the answer after {total_s:g} s"
    if isinstance(error, httpx.ConnectError):
        return f"no connection: {error}"
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        return f"the address can't be used: {error}"
    return f"the connection broke: {type(error).__name__}{f' ({error})' if str(error) else ''}"


def error_sentence(body: bytes) -> str:
    """The message inside an error's body: OpenAI's, FastAPI's or SGLang's shape, else its first words."""
    try:
        found = _message(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    text = found or body[:ERROR_BODY_BYTES].decode(errors="replace")
    return " ".join(text.split())[:300] or "no message"


def _message(value: Any) -> str | None:
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            inner = value[key]
            return inner if isinstance(inner, str) else _message(inner) or str(inner)
    return None
