"""The watchdog of a load: it ends by want of progress, never by total time.

Progress is a read on any connection, or a request that the server ended. One that we gave up after its own `timeout_s` is
none, or a hung server would live as long as there are requests.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from specbench import clock
from specbench.errors import LaunchError
from specbench.units import Second

LOOKS_COUNT: Final = 4
"""Within the limit, so that it is met by a quarter."""
LONGEST_LOOK_S: Final = 1.0


class Pace:
    """What one process's load is doing. `reads_count` counts the reads of answers that are on their way."""

    def __init__(self, reads_count: Callable[[], int]) -> None:
        self._reads_count = reads_count
        self._waiting_count = self._ended_count = 0
        self._seen_ended_count = self._seen_reads_count = 0

    def begin(self) -> None:
        """A request leaves."""
        self._waiting_count += 1

    def end(self, given_up: bool) -> None:
        """It is over; `given_up`: by our own time limit."""
        self._waiting_count -= 1
        self._ended_count += not given_up

    def moved(self) -> bool:
        """Whether there was progress since the last look, or nothing to wait for."""
        reads_count = self._reads_count()
        moved = reads_count > self._seen_reads_count or self._ended_count > self._seen_ended_count
        self._seen_reads_count, self._seen_ended_count = reads_count, self._ended_count
        return moved or not self._waiting_count


class Stall:
    """Watches a launch's load, wherever it is driven."""

    def __init__(self, limit_s: Second) -> None:
        self._limit_s = limit_s
        self._looks: list[Callable[[], bool]] = []

    def watch(self, moved: Callable[[], bool]) -> None:
        """Adds a load; each must move, or have nothing to wait for."""
        self._looks.append(moved)

    async def come(self) -> None:
        """Returns when nothing has moved for the limit."""
        still_since_s = clock.now_s()
        while clock.now_s() - still_since_s < self._limit_s:
            await asyncio.sleep(min(LONGEST_LOOK_S, self._limit_s / LOOKS_COUNT))
            moves = [moved() for moved in self._looks]
            if all(moves):  # each is asked: the answer counts from the last time
                still_since_s = clock.now_s()

    def error(self, log_tail: tuple[str, ...]) -> LaunchError:
        """What the launch ends with."""
        return LaunchError(
            "server_hung",
            f"the server hangs: requests are waiting, and for {self._limit_s:g} s (stall_timeout_s) none of them got a "
            "chunk or ended",
            log_tail,
        )
