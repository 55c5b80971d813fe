"""Change points of a series: E-divisive means (Matteson and James 2014), the method of Hunter and apache-otava.

A series is split where the energy distance between its two parts is largest, if hardly any shuffled series has a split as
large; then each part again. The split is the largest of many, and the shuffled ones are searched alike, so that it is not
tested as if it had been named beforehand (which a t-test of the chosen split does).
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHUFFLES_COUNT: Final = 999
P_RATIO: Final = 0.005
"""Share of shuffled series that may have as large a split."""
SEGMENT_COUNT: Final = 3
"""Nights that a part has at least: a single odd one is no change."""
FEWEST_COUNT: Final = 10
"""Nights below which no split can be rare enough."""
SMALLEST_RATIO: Final = 0.01
"""Shifts of the median below it are not worth a word."""
SEED: Final = 20140101


class ChangePoint(Struct, frozen=True, kw_only=True):
    """From this night on the series is another."""

    night_index: int
    """In the series as given: the first night of the new part."""
    change_ratio: float
    """Of the medians, the part after over the part before, less 1."""
    p_ratio: float


def change_points(values: Sequence[float | None]) -> tuple[ChangePoint, ...]:
    """In order of time. `values`: one a night, all positive; None where nothing was measured."""
    told = [(place, value) for place, value in enumerate(values) if value is not None and value > 0]
    series = [value for _, value in told]
    splits = dict(_splits([math.log(value) for value in series], 0))
    edges = [0, *sorted(splits), len(series)]
    found = []
    for before, at, after in zip(edges, edges[1:], edges[2:], strict=False):
        ratio = median(series[at:after]) / median(series[before:at]) - 1
        if abs(ratio) >= SMALLEST_RATIO:
            found.append(ChangePoint(night_index=told[at][0], change_ratio=ratio, p_ratio=splits[at]))
    return tuple(found)


def _splits(series: Sequence[float], offset_index: int) -> list[tuple[int, float]]:
    """Place and p of each, in no order."""
    found = _split(series)
    if found is None:
        return []
    at, p = found
    before, after = _splits(series[:at], offset_index), _splits(series[at:], offset_index + at)
    return [(offset_index + at, p), *before, *after]


def _split(series: Sequence[float]) -> tuple[int, float] | None:
    """The best one, None where it is not rare."""
    import numpy as np

    if len(series) < FEWEST_COUNT or max(series) == min(series):
        return None
    values = np.asarray(series)
    distances = np.abs(values[:, None] - values[None, :])
    at, seen = _best(distances)
    dice = np.random.default_rng(SEED)
    as_large_count, limit_count = 0, P_RATIO * (SHUFFLES_COUNT + 1)
    for _ in range(SHUFFLES_COUNT):
        order = dice.permutation(len(series))
        as_large_count += _best(distances[np.ix_(order, order)])[1] >= seen * (1 - 1e-12)
        if 1 + as_large_count > limit_count:
            return None
    return at, (1 + as_large_count) / (SHUFFLES_COUNT + 1)


def _best(distances: "NDArray[np.float64]") -> tuple[int, float]:
    """Where the scaled energy distance of the two parts is largest, and how large."""
    import numpy as np

    count = len(distances)
    within = distances.cumsum(axis=0).cumsum(axis=1)
    at = np.arange(SEGMENT_COUNT, count - SEGMENT_COUNT + 1)
    before = within[at - 1, at - 1]
    across = within[at - 1, count - 1] - before
    after = within[-1, -1] - before - 2 * across
    n, m = at.astype(float), (count - at).astype(float)
    energy = 2 * across / (n * m) - before / (n * (n - 1)) - after / (m * (m - 1))
    sized = energy * n * m / (n + m)
    place = int(sized.argmax())
    return int(at[place]), float(sized[place])
