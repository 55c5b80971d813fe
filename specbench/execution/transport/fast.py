"""The transport that httpx sees."""

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Final

import httpx

from specbench.clock import now_s
from specbench.execution.transport.arrivals import ClockBridge
from specbench.execution.transport.connection import NothingSentError
from specbench.execution.transport.exchange import Exchange
from specbench.execution.transport.links import has_kernel_stamps
from specbench.execution.transport.pool import AnyLink, Pool
from specbench.execution.transport.wire import Origin, Prepared
from specbench.units import Second

_PROXY_NAMES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class FastTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 over asyncio, or uvloop, and httptools' parser; every read of a body is stamped where it arrives.

    A response carries `extensions["arrivals"]`, an `Arrivals`, and `extensions["abandon"]`, a function that closes its
    connection and returns the bytes of the body that had arrived and were not taken. One transport belongs to one event
    loop. Proxies are not spoken to, whatever the environment says: see `proxy_note`. Raises what httpx's own transport
    raises.
    """

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None, kernel_stamps: bool = True) -> None:
        self._pool = Pool(ssl_context, ClockBridge() if kernel_stamps and has_kernel_stamps() else None)

    async def preopen(self, url: httpx.URL | str, count: int, *, timeout_s: Second = 30.0) -> None:
        """Opens connections to the URL's origin until `count` wait there. Raises httpx.ConnectError."""
        origin = Origin.of(httpx.URL(url))
        await self._pool.preopen(origin, count, timeout_s)

    @property
    def open_count(self) -> int:
        """Connections held at this moment."""
        return self._pool.open_count

    @property
    def reads_count(self) -> int:
        """Reads of the answers that are on their way: grows while a server sends."""
        return self._pool.reads_count

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        started_s = now_s()
        await request.aread()
        prepared = Prepared.of(request)
        exchange = await self.start(prepared, started_s)
        try:
            try:
                await exchange.head()
            except httpx.TransportError:
                if not exchange.was_lost_at_once:
                    raise
                exchange = await self.start(prepared, started_s, fresh=True)
                await exchange.head()
        except BaseException:
            exchange.abort()
            raise
        return httpx.Response(
            exchange.status_code,
            headers=exchange.headers,
            stream=_ResponseStream(exchange),
            extensions={"http_version": b"HTTP/1.1", "arrivals": exchange.arrivals, "abandon": exchange.abandon},
        )

    async def aclose(self) -> None:
        self._pool.close()

    async def start(self, prepared: Prepared, started_s: Second | None = None, fresh: bool = False) -> Exchange:
        """Sends on a kept connection; on a new one if there is none, if the kept one is dead before it took a byte, or if
        `fresh`.

        The shortest way: the answer is then awaited with `Exchange.whole`. The total limit counts from `started_s`.
        """
        origin, method, message, limits = prepared
        begun_s = now_s() if started_s is None else started_s
        kept: AnyLink | None = None if fresh else self._pool.take_idle(origin)
        for link in (kept, None) if kept is not None else (None,):
            used = link or await self._pool.connect(origin, min(limits.connect_s, limits.total_s))
            exchange = Exchange(limits, method, begun_s + limits.total_s)
            exchange.reused = link is not None
            try:
                exchange.start(used, message)
            except NothingSentError as error:
                failure = httpx.WriteError(f"The server closed the connection before the request was sent: {error}.")
                exchange.fail(failure)
            else:
                return exchange
        raise failure


class _ResponseStream(httpx.AsyncByteStream):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await self._exchange.block():
            yield block

    async def aclose(self) -> None:
        self._exchange.abort()


def proxy_note(environ: Mapping[str, str] | None = None) -> str | None:
    """One sentence when the environment names a proxy, which this client never uses; None otherwise."""
    given = os.environ if environ is None else environ
    found = [name for name in _PROXY_NAMES if given.get(name) or given.get(name.lower())]
    if not found:
        return None
    return f"{' and '.join(found)} is set; the load client connects directly and does not use it."
