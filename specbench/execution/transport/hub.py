"""Reads many sockets in one turn of the event loop."""

import asyncio
import select
from collections.abc import Callable
from typing import Final

_READ_BYTES: Final = 1 << 16
_AT_ONCE: Final = 128
"""Sockets read before the loop gets its turn: some 0.3 ms."""


class Hub:
    """The sockets of one event loop, which watches this one thing instead of each of them: a wake-up of the loop is then
    shared by all streams that have something at the same instant.

    `buffers` holds one buffer for all: a read is copied out of it, at its true length, before the next.
    """

    def __init__(self) -> None:
        self.buffers: Final = [memoryview(bytearray(_READ_BYTES))]
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._read_ready)

    def add(self, descriptor: int, read: Callable[[], None]) -> None:
        """`read` is called whenever there is something to read, or the connection is broken."""
        self._readers[descriptor] = read
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP)

    def remove(self, descriptor: int) -> None:
        """Nothing is said of it from now on. Of one that was not added: does nothing."""
        if self._readers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """When all sockets are gone."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _read_ready(self) -> None:
        readers = self._readers
        for descriptor, _ in self._epoll.poll(0, _AT_ONCE):
            read = readers.get(descriptor)  # an earlier one of this turn may have closed it
            if read is not None:
                read()
