"""Log ratios of pairs to answers: did it change, is it within the margin, how many launches more. Pure numbers.

`changed`: paired t against 0, two-sided, by Holm over the whole family: among equals at most `alpha` of all comparisons
hold a false one. `gate`: two one-sided tests against the margin. FAIL is corrected by Holm over the family, for one
false FAIL would fail the whole; PASS is not, for the whole passes only where every metric does.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from specbench.analysis import stats
from specbench.analysis.comparing import POWER_RATIO, Gate

ROUNDING_DIGITS = 12
"""Of a log ratio: beyond it lies the rounding of the figures, which is no difference."""


class Question(Struct, frozen=True, kw_only=True):
    """One primary metric of one variant."""

    differences_ratio: tuple[float, ...]
    """log(B / A), one a pair; two or more."""
    better: Literal["higher", "lower"]
    gated: bool = True
    launch_sd_ratio: float | None = None
    """Of one launch, as `calibrate` found it; None: only these launches are known."""


class Decision(Struct, frozen=True, kw_only=True):
    """The answer to one question."""

    seen: stats.Paired
    interval_alpha_ratio: float
    low_ratio: float
    """Of the interval of the mean log ratio."""
    high_ratio: float
    p_ratio: float
    p_adjusted_ratio: float
    changed: bool
    gate: Gate | None
    launches_needed_count: int | None
    detectable_ratio: float
    """Smallest mean log ratio that so many pairs find with `POWER_RATIO`, at Holm's strictest level."""


def decide(family: Mapping[str, Question], alpha: float, margin: float) -> dict[str, Decision]:
    """By the names of the family."""
    seen = {name: _seen(one) for name, one in family.items()}
    p_values = {name: stats.p_two_sided(one) for name, one in seen.items()}
    adjusted, levels = stats.holm(p_values), stats.holm_alphas(p_values, alpha)
    gates = _gates(family, seen, alpha, margin)
    decisions = {}
    for name, question in family.items():
        low, high = stats.interval(seen[name], levels[name])
        undecided = gates.get(name) == "INCONCLUSIVE"
        decisions[name] = Decision(
            seen=seen[name],
            interval_alpha_ratio=levels[name],
            low_ratio=low,
            high_ratio=high,
            p_ratio=p_values[name],
            p_adjusted_ratio=adjusted[name],
            changed=adjusted[name] <= alpha,
            gate=gates.get(name),
            launches_needed_count=_needed(question, seen[name], alpha, margin, len(gates)) if undecided else None,
            detectable_ratio=detectable(seen[name].sd, seen[name].pair_count, alpha, len(family)),
        )
    return decisions


def detectable(pair_sd: float, pair_count: int, alpha: float, family_count: int) -> float:
    """What `changed` finds 9 times in 10, were it the only change of the family."""
    return stats.detectable(pair_sd, pair_count, alpha / family_count / 2, POWER_RATIO)


def _seen(question: Question) -> stats.Paired:
    return stats.paired([round(one, ROUNDING_DIGITS) for one in question.differences_ratio])


def _gates(family: Mapping[str, Question], seen: Mapping[str, stats.Paired], alpha: float, margin: float) -> dict[str, Gate]:
    """Of the gated ones."""
    gated = {name: one for name, one in family.items() if one.gated}
    losses = {name: _loss(seen[name], one.better) for name, one in gated.items()}
    worse = stats.holm({name: stats.p_above(losses[name], limit(one.better, margin)) for name, one in gated.items()})
    gates: dict[str, Gate] = {}
    for name, one in gated.items():
        within = stats.p_below(losses[name], limit(one.better, margin))
        gates[name] = "FAIL" if worse[name] <= alpha else "PASS" if within <= alpha else "INCONCLUSIVE"
    return gates


def _loss(seen: stats.Paired, better: Literal["higher", "lower"]) -> stats.Paired:
    """The same, counted in the bad direction."""
    return stats.Paired(mean=-seen.mean if better == "higher" else seen.mean, sd=seen.sd, pair_count=seen.pair_count)


def limit(better: Literal["higher", "lower"], margin: float) -> float:
    """The margin as a loss in logs: 2 % less, or 2 % more."""
    return -math.log1p(-margin) if better == "higher" else math.log1p(margin)


def _needed(question: Question, seen: stats.Paired, alpha: float, margin: float, gate_count: int) -> int | None:
    """Pairs in all, if the change is the one that was seen."""
    distance = _loss(seen, question.better).mean - limit(question.better, margin)
    sd = seen.sd if question.launch_sd_ratio is None else question.launch_sd_ratio * math.sqrt(2)
    needed = stats.pairs_needed(abs(distance), sd, alpha / gate_count if distance > 0 else alpha, POWER_RATIO)
    return None if needed is None else max(needed, seen.pair_count + 1)


def differences(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    """log(B / A) of pairs."""
    return tuple(math.log(two / one) for one, two in zip(a, b, strict=True))
