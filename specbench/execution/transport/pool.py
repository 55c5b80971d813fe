"""Connections by origin: made, lent, taken back. Every step is O(1) in the number of connections."""

import asyncio
import errno
import ipaddress
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import httpx

from specbench.clock import now_s
from specbench.execution.transport.arrivals import ClockBridge
from specbench.execution.transport.hub import Hub
from specbench.execution.transport.links import SocketLink, StreamLink
from specbench.execution.transport.wire import Origin
from specbench.units import Second

_KEPT_S: Final = 2.0
"""Longest time a connection waits for its next request: below uvicorn's 5 s, so that none is sent on a connection
that the server is just closing."""
_OPENING_AT_ONCE: Final = 64
"""Connections opened at a time by `preopen`: below the usual listen backlog of 128."""

AnyLink = SocketLink | StreamLink
Address = tuple[socket.AddressFamily, Any]


class Pool:
    """Idle connections are a stack per origin; the one used last is lent first. There is no limit on their number."""

    def __init__(self, context: ssl.SSLContext | None, bridge: ClockBridge | None) -> None:
        self._context = context
        self._bridge = bridge
        self._hub: Hub | None = None
        self._idle: dict[Origin, list[tuple[AnyLink, Second]]] = {}
        """With the time since which each has waited."""
        self._origins: dict[AnyLink, Origin] = {}
        self._addresses: dict[Origin, list[Address]] = {}
        self._resolving = asyncio.Lock()

    @property
    def open_count(self) -> int:
        """Connections held, lent or idle."""
        return len(self._origins)

    @property
    def reads_count(self) -> int:
        """Reads of the answers that are on their way."""
        return sum(link.reads_count for link in self._origins)

    def idle_count(self, origin: Origin) -> int:
        """Connections to an origin that wait for a request."""
        return sum(_is_fresh(link, since_s) for link, since_s in self._idle.get(origin, ()))

    def take_idle(self, origin: Origin) -> AnyLink | None:
        """A kept-alive connection that the server has not closed as far as this machine knows."""
        idle = self._idle.get(origin, [])
        while idle:
            link, since_s = idle.pop()
            if _is_fresh(link, since_s) and not link.is_stale():
                return link
            self._drop(link)
        return None

    async def preopen(self, origin: Origin, count: int, timeout_s: Second) -> None:
        """Opens connections until `count` are idle."""
        gate = asyncio.Semaphore(_OPENING_AT_ONCE)

        async def one() -> None:
            async with gate:
                link = await self.connect(origin, timeout_s)
            self._idle.setdefault(origin, []).append((link, now_s()))

        self._drop_old(origin)
        missing = count - self.idle_count(origin)
        results = await asyncio.gather(*(one() for _ in range(missing)), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def connect(self, origin: Origin, timeout_s: Second) -> AnyLink:
        """A new connection. Raises httpx.ConnectError and httpx.ConnectTimeout."""
        try:
            async with asyncio.timeout(None if timeout_s == float("inf") else timeout_s):
                link = await self._open(origin)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"{origin.host}:{origin.port} did not accept within {timeout_s:g} s.") from error
        except OSError as error:
            self._addresses.pop(origin, None)
            raise httpx.ConnectError(_connect_message(origin, error)) from error
        self._origins[link] = origin
        return link

    def close(self) -> None:
        """Closes everything; requests in flight fail."""
        for link in list(self._origins):
            self._drop(link)
        self._idle.clear()
        if self._hub is not None:
            self._hub.close()
            self._hub = None

    async def _open(self, origin: Origin) -> AnyLink:
        if self._bridge is not None and origin.scheme == "http":
            self._hub = self._hub or Hub()
            return SocketLink(await self._open_socket(origin), self._bridge, self._hub, self._released)
        context = self._tls_context() if origin.scheme == "https" else None
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(self._stream_link, origin.host, origin.port, ssl=context)
        return link

    def _tls_context(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = httpx.create_ssl_context(trust_env=False)
        return self._context

    def _stream_link(self) -> StreamLink:
        return StreamLink(self._released)

    async def _open_socket(self, origin: Origin) -> socket.socket:
        loop = asyncio.get_running_loop()
        async with self._resolving:
            if origin not in self._addresses:
                self._addresses[origin] = await _resolve(origin)
        failure: OSError | None = None
        for family, address in self._addresses[origin]:
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(sock, address)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise failure or OSError("the host has no address")

    def _released(self, link: AnyLink, reusable: bool) -> None:
        if reusable and link.alive and link in self._origins:
            self._idle.setdefault(self._origins[link], []).append((link, now_s()))
        else:
            self._drop(link)

    def _drop_old(self, origin: Origin) -> None:
        idle = self._idle.pop(origin, [])
        self._idle[origin] = [one for one in idle if _is_fresh(*one)]
        for link, _ in set(idle) - set(self._idle[origin]):
            self._drop(link)

    def _drop(self, link: AnyLink) -> None:
        if self._origins.pop(link, None) is not None:
            link.close()


def _is_fresh(link: AnyLink, since_s: Second) -> bool:
    return link.alive and now_s() - since_s < _KEPT_S


async def _resolve(origin: Origin) -> list[Address]:
    """Addresses to try, in order. The thread that asks the resolver is gone afterwards: in a process with one thread
    only, system calls cost less."""
    if _is_ip(origin.host):
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        found = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM, flags=flags)
    else:
        executor = ThreadPoolExecutor(1)
        ask = partial(socket.getaddrinfo, origin.host, origin.port, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(executor, ask)
        finally:
            executor.shutdown(wait=False)
    return [(family, address) for family, _, _, _, address in found]


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def raise_file_limit(count: int) -> int:
    """Lets this process hold `count` open files if the system allows; returns how many it may hold."""
    try:
        import resource
    except ImportError:  # not a Unix: no such limit
        return count
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return count if soft == resource.RLIM_INFINITY else soft


def _connect_message(origin: Origin, error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "No more connections: this process may not open more files. Raise the limit with `ulimit -n`."
    return f"No connection to {origin.host}:{origin.port}: {error.strerror or error}."
