"""Acceptance from counts in a log (vLLM, llama.cpp), folded line by line into a few sums."""

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from specbench.analysis.stats import t_quantile
from specbench.dialects import DecodeSample
from specbench.units import Ratio

LOG_INTERVAL_S = 10.0
"""vLLM's default; used where one interval alone can't tell what is usual."""
STALE_FACTOR = 2.5
"""An interval longer than this many usual ones held idle time."""
USEFUL_RATIO = 0.01
"""A draft position accepted less often brings nothing."""
HALF_DIGIT = 0.0051
"""Lengths are printed with two decimals."""


class Pool(Struct, frozen=True, kw_only=True):
    """Acceptance length over a log, and what it rests on."""

    value: float
    method: str
    weight_count: float
    """What stands behind `value`: verify steps, or lines."""
    weights: str
    accepted_tokens: int | None = None
    drafted_tokens: int | None = None
    estimate: bool = False
    error_length: float | None = None
    """Half the width of a 95 % interval from the spread between records; None with fewer than three."""


MANY: Final = 10_000
"""Beyond, Student's t is the normal distribution to the digits that are printed."""


class Spread:
    """Weighted mean and its error, from sums alone."""

    def __init__(self) -> None:
        self.count = 0
        self.weight = self.weighted = self._ww = self._wwx = self._wwxx = 0.0

    def add(self, value: float, weight: float) -> None:
        """`weight` in any unit, the same for all."""
        self.count += 1
        self.weight += weight
        self.weighted += weight * value
        self._ww += weight * weight
        self._wwx += weight * weight * value
        self._wwxx += weight * weight * value * value

    def add_many(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """As `add`, for each pair."""
        self.count += len(values)
        self.weight += float(weights.sum())
        self.weighted += float(weights @ values)
        squares = weights * weights
        self._ww += float(squares.sum())
        self._wwx += float(squares @ values)
        self._wwxx += float(squares @ (values * values))

    @property
    def mean(self) -> float | None:
        """None before anything has weight."""
        return self.weighted / self.weight if self.weight > 0 else None

    @property
    def error(self) -> float | None:
        """Half the width of a 95 % interval."""
        mean = self.mean
        if mean is None or self.count < 3:
            return None
        squares = max(0.0, self._wwxx - 2 * mean * self._wwx + mean * mean * self._ww)
        factor = t_quantile(0.975, min(self.count - 1, MANY))
        return float(factor * (self.count / (self.count - 1) * squares) ** 0.5 / self.weight)


class Counts:
    """Sums over records that print what was drafted and accepted."""

    def __init__(self) -> None:
        self.spread = Spread()
        self.accepted = self.drafted = self.output_tokens = self.request_tokens = 0
        self.k: int | None = None
        self.exact = True
        self.uncounted = self.unsized = 0
        """Records whose steps, or whose output tokens, no figure gives."""
        self.positions: list[float] = []
        self._position_weight = 0.0
        self.longest_length = 0.0
        self.totals: dict[str, dict[str, int]] = {}
        self._banked = {"drafts": 0, "accepted": 0}
        self.v0: dict[str, int] | None = None
        self._v0_banked = {"drafted": 0, "emitted": 0, "accepted": 0}

    def add(self, sample: DecodeSample) -> float | None:
        """Takes a record; gives its acceptance length, None where it can't be told."""
        extra = sample.extra
        if extra.get("cumulative"):
            return self._cumulative(sample, extra)
        accepted, drafted = int(extra["accepted"]), int(extra["drafted"])
        self.accepted += accepted
        self.drafted += drafted
        self.k = int(extra["k"]) if "k" in extra else self.k
        if "output_tokens" in extra:
            self.output_tokens += int(extra["output_tokens"])
        else:
            self.unsized += 1
        steps, exact = steps_of(sample, self.k)
        self.exact = self.exact and exact
        self._positions(extra.get("per_position"), steps or 1.0)
        length = sample.accept_length if steps is None else 1 + accepted / steps
        if steps is None or length is None:
            self.uncounted += 1
            return length
        self.spread.add(length, steps)
        self.longest_length = max(self.longest_length, length)
        return length

    def statistics(self, value: dict[str, Any]) -> None:
        """llama.cpp's running totals: the last of each way to draft counts; a fall means that the server began anew."""
        impl = str(value["impl"])
        before = self.totals.get(impl)
        if before is not None and value["drafts"] < before["drafts"]:
            self._banked["drafts"] += before["drafts"]
            self._banked["accepted"] += before["accepted"]
        self.totals[impl] = {"drafts": int(value["drafts"]), "accepted": int(value["accepted"])}

    @property
    def statistics_sum(self) -> tuple[int, int]:
        """(drafts, accepted) of all launches and ways."""
        rows = [*self.totals.values(), self._banked]
        return sum(row["drafts"] for row in rows), sum(row["accepted"] for row in rows)

    def _positions(self, rates: object, weight: float) -> None:
        if not isinstance(rates, list) or not rates:
            return
        self.k = max(self.k or 0, len(rates))
        self.positions += [0.0] * (len(rates) - len(self.positions))
        for index, rate in enumerate(rates):
            self.positions[index] += weight * rate
        self._position_weight += weight

    @property
    def per_position(self) -> tuple[Ratio, ...]:
        """Share of steps in which each draft position was accepted."""
        return tuple(one / self._position_weight for one in self.positions) if self._position_weight else ()

    @property
    def last_useful_position(self) -> int | None:
        """1-based; 0 when no position is accepted, None where none is printed."""
        rates = self.per_position
        return max((index for index, rate in enumerate(rates, 1) if rate >= USEFUL_RATIO), default=0) if rates else None

    def _cumulative(self, sample: DecodeSample, extra: dict[str, Any]) -> float | None:
        now = {name: int(extra[name]) for name in ("drafted", "emitted", "accepted")}
        self.k = int(extra["k"]) or self.k
        before = self.v0
        if before is not None and now["drafted"] < before["drafted"]:
            for name, value in before.items():
                self._v0_banked[name] += value
            before = None
        self.v0 = now
        old = before or {"drafted": 0, "emitted": 0}
        steps = (now["drafted"] - old["drafted"]) / self.k if self.k else 0.0
        if steps <= 0:
            return None
        length = (now["emitted"] - old["emitted"]) / steps
        self.spread.add(length, steps)
        self.longest_length = max(self.longest_length, length)
        return length

    def pooled(self, method: str) -> Pool | None:
        """The acceptance length by `method`: `v0`, `vllm`, `llamacpp`; None when the figures do not give it."""
        if self.v0 is not None:
            return self._pooled_v0()
        return self._pooled_llamacpp() if method == "llamacpp" else self._pooled_vllm()

    def _pooled_v0(self) -> Pool | None:
        rows = (self.v0 or {}, self._v0_banked)
        drafted, emitted = (sum(row.get(name, 0) for row in rows) for name in ("drafted", "emitted"))
        if not drafted or not self.k:
            return None
        steps = drafted / self.k
        return self._pool(emitted / steps, "emitted/(drafted/k)", steps, estimate=False, accepted=None, drafted=drafted)

    def _pooled_vllm(self) -> Pool | None:
        mean = self.spread.mean
        if mean is None or self.uncounted:
            return None
        steps = self.spread.weight
        return self._pool(mean, "1 + accepted/drafts", steps, not self.exact, self.accepted, self.drafted)

    def _pooled_llamacpp(self) -> Pool | None:
        drafts, accepted = self.statistics_sum
        if drafts and not any("ngram" in impl for impl in self.totals):
            method = "1 + accepted/drafts from the last statistics line"
            return self._pool(1 + accepted / drafts, method, drafts, False, self.accepted or accepted, self.drafted or None)
        steps = self.output_tokens + self.request_tokens - self.accepted
        if not self.drafted or self.unsized or steps <= 0:
            return None
        method = "output tokens/(output tokens - accepted)"
        return self._pool((steps + self.accepted) / steps, method, steps, True, self.accepted, self.drafted)

    def _pool(
        self, value: float, method: str, weight: float, estimate: bool, accepted: int | None, drafted: int | None
    ) -> Pool:
        return Pool(
            value=value,
            method=method,
            weight_count=weight,
            weights="drafts",
            accepted_tokens=accepted,
            drafted_tokens=drafted,
            estimate=estimate,
            error_length=self.spread.error,
        )


def steps_of(sample: DecodeSample, k: int | None) -> tuple[float | None, bool]:
    """Verify steps behind a record and whether they are exact: by the draft length where the printed length agrees with
    it (a drafter of varying length proposes fewer), else by the rates per position, else by the printed length."""
    extra = sample.extra
    accepted, drafted = int(extra["accepted"]), int(extra["drafted"])
    rates = extra.get("per_position")
    depth = len(rates) if isinstance(rates, list) else k
    if "output_tokens" in extra and int(extra["output_tokens"]) > accepted:
        return float(int(extra["output_tokens"]) - accepted), False
    printed = sample.accept_length
    if "drafts" in extra:
        return float(extra["drafts"]), True
    by_depth = drafted / depth if depth else None
    if by_depth and (printed is None or _agrees(accepted, by_depth, printed)):
        return by_depth, True
    if accepted and isinstance(rates, list) and sum(rates) > 0:
        return float(max(1, round(accepted / sum(rates)))), False
    if accepted and printed is not None and printed > 1:
        return accepted / (printed - 1), False
    return by_depth, False


def _agrees(accepted: int, steps: float, printed: float) -> bool:
    """With the bonus token, or without it as the first V1 releases printed."""
    length = 1 + accepted / steps
    return abs(length - printed) <= HALF_DIGIT or abs(length - 1 - printed) <= HALF_DIGIT
