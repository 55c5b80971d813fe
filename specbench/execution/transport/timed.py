"""The deadlines of an exchange: one timer that looks at the state and sets itself again, so that a read costs no timer."""

import asyncio
from typing import Final

import httpx

from specbench.clock import now_s
from specbench.execution.transport.arrivals import Arrivals
from specbench.execution.transport.connection import Link
from specbench.execution.transport.wire import NEVER_S, Deadlines, Limits
from specbench.units import Second

_LOST_AT_ONCE_S: Final = 0.1
_TICK_S: Final = 1.0
"""Longest time between two looks at the deadlines."""


class Timed:
    """The half of `Exchange` that watches the clock; the other half keeps what it looks at."""

    __slots__ = ("_timer",)
    arrivals: Arrivals
    _blocks: list[bytes]
    _deadline_s: Second
    _last_s: Second
    _limits: Limits
    _link: Link | None
    _loop: asyncio.AbstractEventLoop
    _paused: bool
    _head_done: bool
    _wire_bytes: int
    _taken_bytes: int
    reused: bool
    _timer: asyncio.TimerHandle | None

    @property
    def _over(self) -> bool:
        raise NotImplementedError

    def parse(self) -> bool:
        """Parses what was deferred."""
        raise NotImplementedError

    def fail(self, error: httpx.TransportError) -> None:
        """Ends the exchange."""
        raise NotImplementedError

    @property
    def was_lost_at_once(self) -> bool:
        """Whether a kept connection was closed before a byte of an answer came, right after the sending: its server was
        closing it already. The request may then be sent once more."""
        return (
            self.reused and not self._head_done and not self._wire_bytes and now_s() - self.arrivals.sent_s < _LOST_AT_ONCE_S
        )

    def _tick(self) -> None:
        now = now_s()
        self.parse()
        overdue = None if self._over else self._deadlines().overdue(now, self._limits)
        if overdue is not None:
            self.fail(overdue)
        if not self._over:
            self._timer = self._loop.call_later(max(0.001, self._next_look_s(now)), self._tick)

    def _next_look_s(self, now: Second) -> Second:
        return min(_TICK_S, min(self._deadlines()) - now)

    def _quiet_since_s(self) -> Second:
        stamps_s = self.arrivals.stamps_s
        return max(self._last_s, stamps_s[-1]) if stamps_s else self._last_s

    def _deadlines(self) -> Deadlines:
        limits, sent_s = self._limits, self.arrivals.sent_s
        sending = self._link is not None and self._link.unsent_bytes() > 0
        return Deadlines(
            total_s=self._deadline_s,
            write_s=sent_s + limits.write_s if sending else NEVER_S,
            first_byte_s=NEVER_S if self._taken_bytes or self._blocks else sent_s + limits.first_byte_s,
            read_s=NEVER_S if self._paused else self._quiet_since_s() + limits.read_s,
        )
