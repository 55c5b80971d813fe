"""Which decode lines carry a throughput that counts idle time as well.

SGLang divides the tokens since the last decode line by the wall time since then, and that clock runs on while the
server is idle. The step time behind a line, (accept length x running requests) / throughput, shows it, at any batch size.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

AFTER_IDLE_FACTOR: Final = 2.5
"""A first line after idling is stale when its step time exceeds the usual one by this factor."""
ANYWHERE_FACTOR: Final = 10.0
"""Elsewhere, where the idle gap itself left no trace in the log (a decode server prints no prefill lines)."""
ALIKE_FACTOR: Final = 2.0
"""Batches of at most so different a size are compared, where there are any."""
MOST_COUNTED: Final = 1 << 16
MOST_SIZES: Final = 512
"""Of so many sizes the commonest are looked at; a real batch has fewer."""

MOST_MEDIAN: Final = 10_000
"""Of a longer stretch, lines at even distances tell the usual step time."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def stale(running: Floats, length: Floats, tps: Floats, after_idle: Flags) -> Flags:
    """By decode line, all of one stretch; NaN where a line does not say. A length that is not printed is 1."""
    step_s = _step_s(running, length, tps)
    told = ~np.isnan(step_s)
    usual = _usual(running, step_s, told & ~after_idle) or _usual(running, step_s, told)
    if usual is None:
        return np.zeros(len(step_s), np.bool_)
    sizes, usual_s = usual
    slow = np.flatnonzero(step_s > AFTER_IDLE_FACTOR * usual_s.min())  # few; no other can be stale
    reference_s = np.full(len(slow), np.median(usual_s))
    for size in commonest(running[slow]).tolist():
        alike = (sizes >= size / ALIKE_FACTOR) & (sizes <= size * ALIKE_FACTOR)
        if alike.any():
            reference_s[running[slow] == size] = np.median(usual_s[alike])
    is_stale = np.zeros(len(step_s), np.bool_)
    is_stale[slow] = step_s[slow] > reference_s * np.where(after_idle[slow], AFTER_IDLE_FACTOR, ANYWHERE_FACTOR)
    return is_stale


def _step_s(running: Floats, length: Floats, tps: Floats) -> Floats:
    """Wall time of a step of the whole batch; NaN when the line does not tell, infinite at throughput zero."""
    tokens = np.where(np.isnan(length), 1.0, length) * running
    tokens[~(running > 0)] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        step_s: Floats = tokens / tps
    step_s[(tps <= 0) & ~np.isnan(running)] = np.inf
    return step_s


def _usual(running: Floats, step_s: Floats, which: Flags) -> tuple[Floats, Floats] | None:
    """Batch sizes and the median step time of each; None when there is no line."""
    thin = slice(None, None, max(1, len(running) // MOST_MEDIAN))
    running, step_s = running[thin][which[thin]], step_s[thin][which[thin]]
    if not len(running):
        return None
    sizes = commonest(running)
    medians = [np.median(step_s[running == size]) for size in sizes.tolist()]
    return sizes, np.array(medians, np.float64)


def are_counted(running: Floats) -> bool:
    """Whether they are small enough to have a counter each."""
    return bool(len(running) and running.min() >= 0 and running.max() < MOST_COUNTED)


def commonest(running: Floats) -> Floats:
    """The distinct sizes in rising order, at most `MOST_SIZES` of them: only garbage has more."""
    if are_counted(running):
        counts = np.bincount(running.astype(np.int64))
        sizes = np.flatnonzero(counts)
        counts, sizes = counts[sizes], sizes.astype(np.float64)
    else:
        sizes, counts = np.unique(running, return_counts=True)
    return np.sort(sizes[np.argsort(counts, kind="stable")[-MOST_SIZES:]])
