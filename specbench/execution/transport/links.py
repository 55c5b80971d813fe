"""The two kinds of connection: a socket whose reads the kernel stamps, and asyncio's own transports for all else."""

import asyncio
import platform
import socket
import struct
import sys
from collections.abc import Callable
from typing import Final, cast

import httpx

from specbench.clock import now_s
from specbench.execution.transport.arrivals import ClockBridge
from specbench.execution.transport.connection import NothingSentError
from specbench.execution.transport.exchange import Exchange
from specbench.execution.transport.hub import Hub

_CONTROL_BYTES: Final = 64
_SO_TIMESTAMPNS: Final = 35
"""The Linux constant, absent from Python's socket module; the same on the machines below."""
_MACHINES: Final = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x"})
_timespec: Final = struct.Struct("@ll").unpack_from


def has_kernel_stamps() -> bool:
    """Whether this system can stamp received bytes in the kernel."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


class SocketLink:
    """A plain TCP connection read through recvmsg. The kernel stamps segments as they are queued, before the loop runs."""

    __slots__ = (
        *(
            "_bridge",
            "_buffer",
            "_buffers",
            "_exchange",
            "_hub",
            "_loop",
            "_on_release",
            "_receive",
            "_sock",
            "_steps_before",
        ),
        *("_unsent", "alive"),
    )

    def __init__(
        self,
        sock: socket.socket,
        bridge: ClockBridge,
        hub: Hub,
        on_release: Callable[["SocketLink", bool], None],
    ) -> None:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.alive = True
        self._sock = sock
        self._bridge = bridge
        self._on_release = on_release
        self._exchange: Exchange | None = None
        self._unsent = memoryview(b"")
        self._steps_before = 0
        self._hub = hub
        self._buffers = hub.buffers
        self._buffer = hub.buffers[0]
        self._receive = sock.recvmsg_into
        self._loop = asyncio.get_running_loop()
        hub.add(sock.fileno(), self._readable)

    def attach(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._steps_before = self._bridge.step_count

    @property
    def reads_count(self) -> int:
        """Of the answer that is on its way."""
        return len(self._exchange.arrivals.stamps_s) if self._exchange else 0

    def is_stale(self) -> bool:
        """True when the server has closed it, or says something unasked."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def send(self, message: bytes) -> None:
        try:
            sent_bytes = self._sock.send(message)
        except BlockingIOError:
            sent_bytes = 0
        except OSError as error:
            raise NothingSentError(str(error)) from error
        if sent_bytes < len(message):
            self._unsent = memoryview(message)[sent_bytes:]
            self._loop.add_writer(self._sock, self._writable)

    def unsent_bytes(self) -> int:
        return len(self._unsent)

    def pause(self) -> None:
        self._hub.remove(self._sock.fileno())

    def resume(self) -> None:
        if self.alive:
            self._hub.add(self._sock.fileno(), self._readable)

    def release(self, reusable: bool) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.arrivals.stepped = self._bridge.step_count != self._steps_before
        self._on_release(self, reusable)

    def close(self) -> None:
        if self.alive:
            self.alive = False
            self._hub.remove(self._sock.fileno())
            self._loop.remove_writer(self._sock)
            self._sock.close()
        if self._exchange is not None:
            self._exchange.fail(httpx.ReadError("The connection was closed by the client."))

    def _readable(self) -> None:
        try:
            count, control, _, _ = self._receive(self._buffers, _CONTROL_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return self._lost(error)
        exchange = self._exchange
        if not count or exchange is None:
            return self._lost(None)
        if control:
            second, nanosecond = _timespec(control[0][2])
            at_s = self._bridge.to_monotonic_s(second, nanosecond)
        else:
            at_s = now_s()
            exchange.arrivals.loop_count += 1
        return exchange.take(bytes(self._buffer[:count]), at_s)

    def _lost(self, error: OSError | None) -> None:
        exchange = self._exchange
        if exchange is None:
            self._on_release(self, False)
        elif error is None:
            exchange.end_of_stream()
        else:
            exchange.fail(httpx.ReadError(f"The connection broke while reading: {error.strerror or error}."))

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # The answer may already be waiting to be read: the reader decides. What is unsent stays counted.
            self._loop.remove_writer(self._sock)
            return
        if not self._unsent:
            self._loop.remove_writer(self._sock)


class StreamLink(asyncio.Protocol):
    """A connection over asyncio's transports: TLS, and systems without kernel stamps. Stamped when the loop reads."""

    def __init__(self, on_release: Callable[["StreamLink", bool], None]) -> None:
        self.alive = True
        self._on_release = on_release
        self._exchange: Exchange | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return self._on_release(self, False)
        exchange.arrivals.loop_count += 1
        return exchange.take(data, now_s())

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        exchange = self._exchange
        if exchange is None:
            self._on_release(self, False)
        elif exc is None:
            exchange.end_of_stream()
        else:
            exchange.fail(httpx.ReadError(f"The connection broke while reading: {exc}."))

    def attach(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def reads_count(self) -> int:
        """Of the answer that is on its way."""
        return len(self._exchange.arrivals.stamps_s) if self._exchange else 0

    def is_stale(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def send(self, message: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise NothingSentError("the connection is closing")
        self._transport.write(message)

    def unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def release(self, reusable: bool) -> None:
        self._exchange = None
        self._on_release(self, reusable)

    def close(self) -> None:
        self.alive = False
        if self._transport is not None:
            self._transport.abort()
        if self._exchange is not None:
            self._exchange.fail(httpx.ReadError("The connection was closed by the client."))
