"""Paired t on log ratios, Holm, power. Pure, numbers in and numbers out; a hundred lines in place of 160 MB of scipy.

Student's t is exact, by the regularised incomplete beta function; the noncentral t, of which power is made, is one
numerical integral. `tests/unit/analysis/test_stats.py` holds both against published tables.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import NormalDist, fmean, stdev
from typing import Final

from msgspec import Struct

from specbench.units import Ratio

TINY: Final = 1e-300
LAUNCHES_LIMIT: Final = 200
"""More pairs than this are not asked for: the answer is `more than`."""
_NORMAL: Final = NormalDist()


class Paired(Struct, frozen=True, kw_only=True):
    """Differences of pairs, as log ratios (B over A)."""

    mean: float
    sd: float
    """Of one difference; n - 1 in its denominator."""
    pair_count: int

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return self.sd / math.sqrt(self.pair_count)

    @property
    def freedom(self) -> int:
        """Degrees of freedom."""
        return self.pair_count - 1


def paired(differences: Sequence[float]) -> Paired:
    """Of two or more differences. Raises ValueError for fewer."""
    if len(differences) < 2:
        raise ValueError("a paired test needs two pairs or more")
    return Paired(mean=fmean(differences), sd=stdev(differences), pair_count=len(differences))


def p_two_sided(seen: Paired, null: float = 0.0) -> float:
    """Chance of a mean so far from `null` when that is the truth."""
    return min(1.0, 2 * t_tail(abs(t_statistic(seen, null)), seen.freedom))


def p_above(seen: Paired, null: float) -> float:
    """One-sided: small when the mean lies above `null`."""
    return t_tail(t_statistic(seen, null), seen.freedom)


def p_below(seen: Paired, null: float) -> float:
    """One-sided: small when the mean lies below `null`."""
    return t_tail(-t_statistic(seen, null), seen.freedom)


def t_statistic(seen: Paired, null: float) -> float:
    """Infinite where all differences are the same and not `null`; 0 where they are `null`."""
    distance = seen.mean - null
    if seen.standard_error > abs(distance) * 1e-12:
        return distance / seen.standard_error
    return math.copysign(math.inf, distance) if distance else 0.0


def interval(seen: Paired, alpha: float) -> tuple[float, float]:
    """Of the mean, two-sided, at level 1 - alpha."""
    half = t_quantile(1 - alpha / 2, seen.freedom) * seen.standard_error
    return seen.mean - half, seen.mean + half


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p by name: at most `alpha` of all families hold one that falls below `alpha` wrongly."""
    adjusted: dict[str, float] = {}
    before = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda one: p_values[one])):
        before = max(before, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = before
    return adjusted


def holm_alphas(p_values: Mapping[str, float], alpha: float) -> dict[str, float]:
    """The level at which Holm looks at each; an interval at that level leaves 0 out exactly when the test rejects.

    Behind the first that is not rejected all are looked at as strictly as that one.
    """
    alphas: dict[str, float] = {}
    level, rejecting = alpha, True
    for rank, name in enumerate(sorted(p_values, key=lambda one: p_values[one])):
        level = alpha / (len(p_values) - rank) if rejecting else level
        rejecting = rejecting and p_values[name] <= level
        alphas[name] = level
    return alphas


def ratio_of(log_ratio: float) -> Ratio:
    """The change that a log ratio stands for, B / A - 1; finite for any, for JSON knows no infinity."""
    return math.expm1(min(log_ratio, 700.0))


def t_tail(t: float, freedom: int) -> float:
    """P(T > t)."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    half = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return half if t >= 0 else 1 - half


@cache
def t_quantile(share: Ratio, freedom: int) -> float:
    """The t below which this share lies."""
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    return _rising_root(lambda t: 1 - share - t_tail(t, freedom))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), regularised, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    value, c, d = 1.0, 1.0, 0.0
    for step in range(500):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        else:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        d = 1 / _away_from_zero(1 + term * d)
        c = _away_from_zero(1 + term / c)
        value *= c * d
        if abs(1 - c * d) < 1e-15:
            break
    return front * (value - 1)


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def power(shift: float, sd: float, pair_count: int, alpha: float) -> float:
    """Chance that a one-sided t-test at `alpha` sees a mean that lies `shift` above its null.

    A two-sided test at `alpha` has that of a one-sided one at half of it: the other side adds nothing that counts.
    """
    if sd <= 0:
        return 1.0 if shift > 0 else 0.0
    critical = t_quantile(1 - alpha, pair_count - 1)
    return noncentral_t_tail(critical, pair_count - 1, shift * math.sqrt(pair_count) / sd)


def noncentral_t_tail(t: float, freedom: int, shift: float) -> float:
    """P(T > t) for a T whose numerator has mean `shift`: Φ(shift - t·s) over the density of s, s² = χ²/freedom."""
    spread = 9 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - spread), 1 + spread
    step = (high - low) / 400
    log_front = math.log(2) + (freedom / 2) * math.log(freedom / 2) - math.lgamma(freedom / 2)
    total = 0.0
    for index in range(401):
        s = low + index * step
        weight = 1 if index in (0, 400) else 4 if index % 2 else 2
        log_density = (freedom - 1) * math.log(s) - freedom * s * s / 2 if s > 0 else (0.0 if freedom == 1 else -math.inf)
        total += weight * math.exp(log_front + log_density) * _NORMAL.cdf(shift - t * s)
    return min(1.0, total * step / 3)


def detectable(sd: float, pair_count: int, alpha: float, wanted_power: Ratio) -> float:
    """The shift (log ratio) that a one-sided test at `alpha` sees with this power."""
    return sd * _detectable_in_sds(pair_count, alpha, wanted_power)


@cache
def _detectable_in_sds(pair_count: int, alpha: float, wanted_power: Ratio) -> float:
    return _rising_root(lambda shift: power(shift, 1.0, pair_count, alpha) - wanted_power)


def pairs_needed(shift: float, sd: float, alpha: float, wanted_power: Ratio) -> int | None:
    """Fewest pairs, 3 or more, that see this shift with this power; None for more than `LAUNCHES_LIMIT`."""
    enough = range(3, LAUNCHES_LIMIT + 1)
    if shift <= 0 or power(shift, sd, LAUNCHES_LIMIT, alpha) < wanted_power:
        return None
    low, high = 0, len(enough) - 1
    while low < high:
        middle = (low + high) // 2
        if power(shift, sd, enough[middle], alpha) >= wanted_power:
            high = middle
        else:
            low = middle + 1
    return enough[low]


def _rising_root(of: Callable[[float], float]) -> float:
    """Where a rising function crosses 0, at 0 or above; to 12 digits."""
    high = 1.0
    while of(high) < 0:
        high *= 2
    low = 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) < 0 else (low, middle)
        if high - low < 1e-12 * high:
            break
    return high
