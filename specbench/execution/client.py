"""One streaming request. What arrives is stamped and kept by the transport; it is decoded when the request has ended."""

import asyncio
from contextlib import suppress
from typing import Any, Final

import httpx
import msgspec

from specbench import clock
from specbench.dialects import HttpRequest
from specbench.execution.transport import WHOLE_BODY, Arrivals, FastTransport, raise_file_limit, request_extensions
from specbench.units import Second

CONNECT_TIMEOUT_S: Final = 30.0
ERROR_BODY_BYTES: Final = 64 * 1024
SPARE_FILES: Final = 256
"""Open files that the process needs beside its connections."""
PREOPEN_TIMEOUT_S: Final = 5.0


class Exchange(msgspec.Struct, kw_only=True):
    """One request and everything that came back, as it came. Times are `clock.now_s()`."""

    sent_s: Second
    done_s: Second = 0.0
    """Arrival of the last byte where the answer ended well, else when it was given up."""
    body: bytes = b""
    arrivals: Any = None
    """`Arrivals` of the body; None when there was no answer."""
    status_code: int | None = None
    error: str | None = None
    cancelled: bool = False
    """The load was stopped before the answer ended."""


class LoadClient(httpx.AsyncClient):
    """httpx's client around the transport; the load's own requests are handed to `wire` directly."""

    def __init__(self, base_url: str, transport: httpx.AsyncBaseTransport | None) -> None:
        self.wire: httpx.AsyncBaseTransport = transport or FastTransport()
        super().__init__(
            base_url=base_url,
            transport=self.wire,
            trust_env=False,
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
            headers={"Accept-Encoding": "identity", "User-Agent": "specbench"},
        )

    async def preopen(self, count: int) -> None:
        """Opens connections ahead of the load, so that no request waits for its handshake."""
        raise_file_limit(count + SPARE_FILES)
        if isinstance(self.wire, FastTransport):
            with suppress(httpx.TransportError):  # the request that then lacks one tells why
                await self.wire.preopen(self.base_url, count, timeout_s=PREOPEN_TIMEOUT_S)


def open_client(base_url: str, transport: httpx.AsyncBaseTransport | None = None) -> LoadClient:
    """The one place where a client is made: as many connections as there are streams, and no proxy from the environment."""
    return LoadClient(base_url, transport)


def prepare(client: httpx.AsyncClient, request: HttpRequest, timeout_s: Second) -> httpx.Request:
    """The request as it will be sent: what can be done before it is due. Raises httpx.InvalidURL."""
    limits = request_extensions(total_s=timeout_s, wake_bytes=WHOLE_BODY)
    body, headers = msgspec.json.encode(request.body), {"Content-Type": "application/json"}
    return client.build_request("POST", request.path, content=body, headers=headers, extensions=limits)


async def exchange(client: LoadClient, request: httpx.Request) -> Exchange:
    """Sends and receives. Never raises: trouble is a sentence in `error`, a stopped load is `cancelled`."""
    seen = Exchange(sent_s=clock.now_s())
    try:
        await _receive(client.wire, request, seen)
    except asyncio.CancelledError:
        seen.error, seen.cancelled = "stopped before the answer ended", True
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, RuntimeError) as error:
        seen.error = transport_sentence(error, request)
    arrivals = seen.arrivals
    ended_well = seen.error is None and arrivals is not None and len(arrivals.stamps_s) > 0
    seen.done_s = arrivals.stamps_s[-1] if ended_well else clock.now_s()
    return seen


async def _receive(wire: httpx.AsyncBaseTransport, request: httpx.Request, seen: Exchange) -> None:
    response = await wire.handle_async_request(request)
    seen.status_code = response.status_code
    arrivals = response.extensions.get("arrivals")
    seen.arrivals = arrivals or Arrivals()
    seen.sent_s = arrivals.sent_s if arrivals else seen.sent_s
    blocks: list[bytes] = []
    try:
        async for block in response.aiter_raw():
            blocks.append(block)
            if arrivals is None:
                _stamp(seen.arrivals, len(block))
    except asyncio.CancelledError:
        blocks.append(response.extensions["abandon"]() if arrivals else b"")
        raise
    finally:
        seen.body = b"".join(blocks)
        await response.aclose()
    seen.error = answer_sentence(response, seen.body)


def _stamp(arrivals: Arrivals, length_bytes: int) -> None:
    """For a transport that stamps nothing itself."""
    arrivals.loop_count += 1
    arrivals.stamps_s.append(clock.now_s())
    arrivals.offsets.append((arrivals.offsets[-1] if arrivals.offsets else 0) + length_bytes)


def answer_sentence(response: httpx.Response, body: bytes) -> str | None:
    """What is wrong with an answer as a whole; None when it is a stream to be read."""
    if response.status_code != 200:
        wait = " ".join(response.headers.get("retry-after", "").split())[:60]
        asked = f"; it asks to retry after {wait}{' s' if wait.isdigit() else ''}" if wait else ""
        return f"HTTP {response.status_code}: {error_sentence(body[:ERROR_BODY_BYTES])}{asked}"
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    return None if coding == "identity" else f"the answer is compressed ({coding[:40]}) although the request forbids it"


def transport_sentence(error: Exception, request: httpx.Request) -> str:
    """What became of a connection."""
    if isinstance(error, httpx.ConnectTimeout):
        limit_s = min(CONNECT_TIMEOUT_S, request.extensions["specbench"]["total_s"])
        return f"no connection within {limit_s:g} s"
    if isinstance(error, httpx.TimeoutException):
        return f"no end of the answer after {request.extensions['specbench']['total_s']:g} s"
    if isinstance(error, httpx.ConnectError):
        return f"no connection: {error}"
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
        return f"the address can't be used: {error}"
    return f"the connection broke: {type(error).__name__}{f' ({error})' if str(error) else ''}"


def error_sentence(body: bytes) -> str:
    """The message inside an error's body: OpenAI's, FastAPI's or SGLang's shape, else its first words."""
    try:
        found = _message(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    text = found or body.decode(errors="replace")
    return " ".join(text.split())[:300] or "no message"


def _message(value: Any) -> str | None:
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and key in value:
            inner = value[key]
            return inner if isinstance(inner, str) else _message(inner) or str(inner)
    return None
