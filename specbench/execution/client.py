"""One streaming request. What arrives is only stamped and kept; it is decoded when the request has ended."""

import asyncio
from typing import Any

import httpx
import msgspec

from specbench import clock
from specbench.dialects import HttpRequest
from specbench.units import Second

CONNECT_TIMEOUT_S = 30.0
KEEPALIVE_S = 2.0
"""Below uvicorn's 5 s, so that no request is sent on a connection that the server is just closing."""
ERROR_BODY_BYTES = 64 * 1024


class Exchange(msgspec.Struct, kw_only=True):
    """One request and everything that came back, as it came. Times are `clock.now_s()`."""

    sent_s: Second
    done_s: Second = 0.0
    reads: list[tuple[Second, bytes]] = []
    """(arrival, bytes) of each read from the network, stamped before anything else is done with it."""
    status_code: int | None = None
    error: str | None = None
    cancelled: bool = False
    """The load was stopped before the answer ended."""


def open_client(base_url: str, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """The one place where a client is made: as many connections as there are streams, and no proxy from the environment.

    Certificates are loaded (and checked) for https only; that takes 20 ms and more.
    """
    return httpx.AsyncClient(
        base_url=base_url,
        transport=transport,
        verify=base_url.startswith("https:"),
        trust_env=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE_S),
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        headers={"Accept-Encoding": "identity", "User-Agent": "specbench"},
    )


async def exchange(client: httpx.AsyncClient, request: HttpRequest, timeout_s: Second) -> Exchange:
    """Sends and receives. Never raises: trouble is a sentence in `error`, a stopped load is `cancelled`."""
    seen = Exchange(sent_s=clock.now_s())
    try:
        async with asyncio.timeout(timeout_s):
            await _receive(client, request, seen)
    except TimeoutError:
        seen.error = f"no end of the answer after {timeout_s:g} s"
    except asyncio.CancelledError:
        seen.error, seen.cancelled = "stopped before the answer ended", True
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, RuntimeError) as error:
        seen.error = transport_sentence(error)
    seen.done_s = clock.now_s()
    return seen


async def _receive(client: httpx.AsyncClient, request: HttpRequest, seen: Exchange) -> None:
    async with client.stream("POST", request.path, json=request.body) as response:
        seen.status_code = response.status_code
        now_s, reads = clock.now_s, seen.reads
        async for data in response.aiter_raw():
            reads.append((now_s(), data))
    if response.status_code != 200:
        body = b"".join(data for _, data in seen.reads)[:ERROR_BODY_BYTES]
        seen.error = f"HTTP {response.status_code}: {error_sentence(body)}"
        seen.reads.clear()


def transport_sentence(error: Exception) -> str:
    """What became of a connection."""
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_TIMEOUT_S:g} s"
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
