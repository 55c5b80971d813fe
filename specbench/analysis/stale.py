"""Which decode lines carry a throughput that counts idle time as well.

SGLang divides the tokens since the last decode line by the wall time since then, and that clock runs on while the
server is idle. The step time behind a line, (accept length x running requests) / throughput, shows it, at any batch size.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

AFTER_IDLE_FACTOR = 2.5
"""A first line after idling is stale when its step time exceeds the usual one by this factor."""
ANYWHERE_FACTOR = 10.0
"""Elsewhere, where the idle gap itself left no trace in the log (a decode server prints no prefill lines)."""
ALIKE_FACTOR = 2.0
"""Batches of at most so different a size are compared, where there are any."""


class Interval(NamedTuple):
    """What one decode line says of the steps since the line before."""

    line: int
    stream: tuple[int | None, int | None]
    """Data-parallel and pipeline rank of the writer."""
    after_idle: bool
    """First of its stream, or first after a prefill that found nothing running, or after a flush."""
    running_requests: int | None
    accept_length: float | None
    gen_throughput_tps: float | None

    @property
    def step_s(self) -> float | None:
        """Wall time per step of the whole batch; None when the line does not tell, infinite at throughput zero."""
        if self.gen_throughput_tps is None or not self.running_requests:
            return None
        tokens = (1.0 if self.accept_length is None else self.accept_length) * self.running_requests
        return tokens / self.gen_throughput_tps if self.gen_throughput_tps > 0 else float("inf")


def stale_lines(intervals: Sequence[Interval]) -> set[int]:
    """Line numbers. Linear in the number of lines: the usual step time is looked up by batch size."""
    usual = _usual_step_s([one for one in intervals if not one.after_idle]) or _usual_step_s(intervals)
    return {one.line for one in intervals if _is_stale(one, usual)}


def _is_stale(one: Interval, usual: dict[int, float]) -> bool:
    step_s, size = one.step_s, one.running_requests
    if step_s is None or not size or not usual:
        return False
    alike = [usual_s for other, usual_s in usual.items() if size / ALIKE_FACTOR <= other <= size * ALIKE_FACTOR]
    reference_s = median(alike or list(usual.values()))
    return step_s > reference_s * (AFTER_IDLE_FACTOR if one.after_idle else ANYWHERE_FACTOR)


def _usual_step_s(intervals: Sequence[Interval]) -> dict[int, float]:
    """Median step time by count of running requests."""
    by_size: dict[int, list[float]] = {}
    for one in intervals:
        if one.step_s is not None and one.running_requests:
            by_size.setdefault(one.running_requests, []).append(one.step_s)
    return {size: median(values) for size, values in by_size.items()}
