"""When bytes arrived: one stamp a read, on the clock of `specbench.clock.now_s`."""

from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import Final, Literal

from specbench.clock import now_s, wall_s
from specbench.units import Second

StampClock = Literal["kernel", "loop"]

_RESAMPLE_S: Final = 0.01
"""Age at which the distance between the two clocks is measured again. A slewed clock drifts 5 µs in this time at most."""
_SLEW_RATIO: Final = 600e-6
"""The kernel slews CLOCK_REALTIME by 500 ppm at most; more than that is a step."""
_STEP_S: Final = 0.0005


class Arrivals:
    """The reads that delivered a response's body.

    Read i brought the body to `offsets[i]` bytes at `stamps_s[i]`. A kernel stamp is that of the last segment a read
    returned: bytes that shared a read with later ones arrived after `stamps_s[i - 1]` and not after `stamps_s[i]`.
    """

    __slots__ = ("head_s", "loop_count", "offsets", "sent_s", "stamps_s", "stepped")

    def __init__(self) -> None:
        self.stamps_s: array[float] = array("d")
        self.offsets: array[int] = array("q")
        self.sent_s: Second = 0.0
        """Just before the first byte of the request was handed to the kernel."""
        self.head_s: Second = 0.0
        """Arrival of the last byte of the response's head."""
        self.loop_count = 0
        """Reads stamped when the event loop got to them, for want of a kernel stamp."""
        self.stepped = False
        """True when the system's clock was set while kernel stamps were taken: the stamps can't be trusted."""

    @property
    def clock(self) -> StampClock:
        """What stamped them: `kernel` only if the kernel stamped every read."""
        return "loop" if self.loop_count or not self.stamps_s else "kernel"

    def at_s(self, end_offset: int) -> Second:
        """Arrival of the byte before `end_offset`. Raises IndexError when that byte has not arrived."""
        return self.stamps_s[bisect_left(self.offsets, end_offset)]


class ClockBridge:
    """Turns the kernel's CLOCK_REALTIME stamps into `now_s` seconds, and notices when the system's clock is set.

    The stamp itself tells how old the measured distance is, so a read costs no clock call.
    """

    __slots__ = ("_base_s", "_monotonic_s", "_realtime_s", "_sampled_s", "_second", "step_count")

    def __init__(self, monotonic_s: Callable[[], Second] = now_s, realtime_s: Callable[[], Second] = wall_s) -> None:
        self._monotonic_s = monotonic_s
        self._realtime_s = realtime_s
        self.step_count = 0
        self._sampled_s, wall = self._tightest()
        self._second = int(wall)
        self._base_s = self._sampled_s - (wall - self._second)

    def to_monotonic_s(self, second: int, nanosecond: int) -> Second:
        """`now_s` time of a CLOCK_REALTIME stamp."""
        stamp_s = second - self._second + nanosecond * 1e-9 + self._base_s
        if -_RESAMPLE_S < stamp_s - self._sampled_s < _RESAMPLE_S:
            return stamp_s
        self.sample()
        return second - self._second + nanosecond * 1e-9 + self._base_s

    def sample(self) -> None:
        """Measures the distance between the clocks, and counts a step when it moved more than a slew can."""
        monotonic, wall = self._tightest()
        expected_wall = monotonic - self._base_s + self._second
        if abs(wall - expected_wall) > _STEP_S + _SLEW_RATIO * (monotonic - self._sampled_s):
            self.step_count += 1
        self._sampled_s, self._second = monotonic, int(wall)
        self._base_s = monotonic - (wall - self._second)

    def _tightest(self) -> tuple[Second, Second]:
        """Monotonic and wall time of one instant: the best of three brackets, so that a preempted one is dropped."""
        best_width, best = float("inf"), (0.0, 0.0)
        for _ in range(3):
            before, wall, after = self._monotonic_s(), self._realtime_s(), self._monotonic_s()
            if after - before < best_width:
                best_width, best = after - before, ((before + after) / 2, wall)
        return best
