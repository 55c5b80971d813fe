"""One sentence a variant, for a person who reads nothing else."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from specbench.analysis import Summary
from specbench.analysis.cells import STOPPED, Arm, Key
from specbench.analysis.dropped import reason
from specbench.units import counted

EVEN_MARGIN_RATIO: Final = 0.03
"""A speed-up this close to 1 is called even."""

HARDLY_LENGTH: Final = 1.3
"""AL below this at every level: hardly accepted."""

COMPARED: Final = "the others are compared with it"


def sentence(
    arm: Arm, rows: Sequence[Summary], codes: Sequence[str], obstacles: Mapping[Key, str], baseline: Arm | None = None
) -> str:
    """`rows` are this variant's, `codes` its verdicts, `obstacles` the levels at which it can't be compared."""
    served = [row for row in rows if row.request_count > row.failed_count]
    if not served:
        return _without_data(arm, rows)
    if "partial" in codes and not any(row.speedup_ratio for row in served):
        return f"{_failure(arm)}; what was measured before is called partial and compared with nothing"
    if "synthetic" in codes:
        return _of_synthetic(arm, served)
    text = _of_baseline(served) if "baseline" in codes else _of_variant(served, codes, obstacles, baseline)
    if "speculation_inactive" in codes and (why := reason(arm.drafter_log)) is not None:
        text = f"{text}; {why.message}"
    return f"{text}; {_failure(arm)}" if arm.failures else text


def _without_data(arm: Arm, rows: Sequence[Summary]) -> str:
    if arm.failures:
        return _failure(arm)
    if any(row.request_count for row in rows):
        return "failed: no request ended well"
    if not arm.asked:
        return "not asked for: the run was begun with other variants only"
    return "not measured: the run ended before it" if arm.launch_count == 0 else "not measured"


def _failure(arm: Arm) -> str:
    if not arm.failures:
        return "cut off in the middle"
    cause = next((one for one in arm.failures if one.kind != STOPPED), arm.failures[0]).cause.strip().rstrip(".")
    if not arm.has_failed:
        return cause
    return f"failed: {cause}" if arm.launch_count == len(arm.failures) else f"a launch failed: {cause}"


def _of_baseline(rows: Sequence[Summary]) -> str:
    rates = sorted((row for row in rows if row.per_user_tps is not None), key=lambda row: row.per_user_tps or 0.0)
    if not rates:
        return COMPARED
    slow, fast = rates[0], rates[-1]
    if slow is fast:
        return f"gives {fast.per_user_tps:.1f} tok/s per user on {place(fast)}; {COMPARED}"
    rates_text = f"{slow.per_user_tps:.1f} ({place(slow)}) to {fast.per_user_tps:.1f} tok/s per user ({place(fast)})"
    return f"gives {rates_text}; {COMPARED}"


def _of_variant(rows: Sequence[Summary], codes: Sequence[str], obstacles: Mapping[Key, str], baseline: Arm | None) -> str:
    compared = [row for row in rows if row.speedup_ratio is not None]
    if not compared:
        return f"not comparable with the baseline: {next(iter(obstacles.values()), _lacking(baseline))}"
    text = next((opening(compared) for code, opening in OPENINGS.items() if code in codes), None) or _by_speed(compared)
    return f"{text}; {len(obstacles)} of {counted(len(rows), 'level')} can't be compared" if obstacles else text


def _lacking(baseline: Arm | None) -> str:
    """Why no level has a speed-up although none is obstructed."""
    if baseline is not None and not baseline.asked:
        return "it was not asked for in this run"
    if baseline is not None and baseline.failures and not any(cell.served for cell in baseline.cells.values()):
        return "it failed"
    return "a token count or the baseline's figures are missing"


def _of_synthetic(arm: Arm, rows: Sequence[Summary]) -> str:
    """What a step costs, in plain steps."""
    speculation = arm.variant.speculation
    told = f"synthetic acceptance of {speculation.synthetic_length:g}" if speculation else "synthetic acceptance"
    needs = sorted((row for row in rows if row.break_even_length is not None), key=lambda row: row.break_even_length or 0.0)
    if not needs:
        return f"{told}: not ranked, and no figure of the baseline to hold it against"
    low, high = (f"{row.break_even_length:.2f} ({place(row)})" for row in (needs[0], needs[-1]))
    cost = low if len(needs) == 1 else f"{low} to {high}"
    return f"{told}, not ranked: a verify step costs as much as plain steps for {cost} tokens, so drafts pay above that AL"


def _of_dead(rows: Sequence[Summary]) -> str:
    return f"accepts no draft tokens ({_lengths(rows)}): {_range(rows)}"


def _of_inactive(rows: Sequence[Summary]) -> str:
    return f"was asked to speculate, yet the server shows no verify step: {_range(rows)}"


OPENINGS: Final[dict[str, Callable[[Sequence[Summary]], str]]] = {
    "dead_drafter": _of_dead,
    "speculation_inactive": _of_inactive,
}
"""Verdicts that a sentence must begin with."""


def _by_speed(rows: Sequence[Summary]) -> str:
    gains = [row for row in rows if _ratio(row) >= 1 + EVEN_MARGIN_RATIO and not _in_doubt(row)]
    losses = [row for row in rows if _ratio(row) <= 1 - EVEN_MARGIN_RATIO and not _in_doubt(row)]
    if not gains and not losses and any(map(_in_doubt, rows)):
        return f"can't be told from the baseline by these launches: {_range(rows)}{_with_length(rows)}"
    if gains and losses:
        return _mixed(rows, gains, losses)
    if len(gains) == len(rows):
        return _all_gain(rows)
    if len(losses) == len(rows):
        return _all_lose(rows)
    if not gains and not losses:
        return f"about even with the baseline: {_range(rows)}{_with_length(rows)}"
    word = f"gains in {len(gains)}" if gains else f"loses in {len(losses)}"
    return f"{word} of {len(rows)} levels and is about even in the others: {_range(rows)}{_with_length(rows)}"


def _in_doubt(row: Summary) -> bool:
    """Whether the interval over launches holds 1."""
    low, high = row.speedup_low_ratio, row.speedup_high_ratio
    return low is not None and high is not None and low <= 1 <= high


def _mixed(rows: Sequence[Summary], gains: Sequence[Summary], losses: Sequence[Summary]) -> str:
    best, worst = _ends(rows)[::-1]
    won = "gains" if len(rows) == 2 else f"gains in {len(gains)} of {len(rows)} levels, at best"
    lost = "loses" if len(losses) == 1 else "loses at worst"
    return f"{won} {_ratio(best):.2f}× on {place(best)}; {lost} on {place(worst)} ({_ratio(worst):.2f}×{_accepted(worst)})"


def _all_gain(rows: Sequence[Summary]) -> str:
    if len(rows) == 1:
        return f"gains {_ratio(rows[0]):.2f}× on {place(rows[0])}{_with_length(rows)}"
    return f"gains everywhere: {_range(rows)}{_with_length(rows)}"


def _all_lose(rows: Sequence[Summary]) -> str:
    best = _ends(rows)[1]
    where = "" if len(rows) == 1 else " everywhere"
    lengths = [row.accept_length for row in rows if row.accept_length is not None]
    if not lengths:
        return f"loses{where}: {_range(rows)}"
    if max(lengths) < HARDLY_LENGTH:
        return f"is hardly accepted at all ({_lengths(rows)}) and loses{where}: {_range(rows)}"
    need = _need(best)
    need += f" on {place(best)}" if need and len(rows) > 1 else ""
    return f"accepts {_tokens(lengths)} tokens a step and still loses{where}: {_range(rows)}{need}"


def _accepted(row: Summary) -> str:
    """What stands beside the speed-up of a level that loses."""
    if row.accept_length is None:
        return ""
    length = f"{row.accept_length:.2f}"
    text = f"hardly accepted, AL {length}" if row.accept_length < HARDLY_LENGTH else f"accepts {length} tokens a step"
    need = f", would need {row.break_even_length:.2f}" if row.break_even_length is not None else ""
    return f": {text}{need}{_beyond(row)}"


def _need(row: Summary) -> str:
    """By what acceptance length a level would break even."""
    if row.accept_length is None or row.break_even_length is None:
        return ""
    return f"; would need {row.break_even_length:.2f} instead of {row.accept_length:.2f}{_beyond(row)}"


def _beyond(row: Summary) -> str:
    """Said when no drafter, however good, could win with so few draft tokens."""
    need, ceiling = row.break_even_length, row.longest_accept_tokens
    return f" (its draft length allows at most {ceiling})" if need and ceiling and need > ceiling else ""


def _with_length(rows: Sequence[Summary]) -> str:
    lengths = [row.accept_length for row in rows if row.accept_length is not None]
    return f", accepting {_tokens(lengths)} tokens a step" if lengths else ""


def _tokens(lengths: Sequence[float]) -> str:
    low, high = f"{min(lengths):.2f}", f"{max(lengths):.2f}"
    return low if low == high else f"{low} to {high}"


def _lengths(rows: Sequence[Summary]) -> str:
    return "AL " + _tokens([row.accept_length for row in rows if row.accept_length is not None])


def _range(rows: Sequence[Summary]) -> str:
    worst, best = _ends(rows)
    if len(rows) == 1:
        return f"{_ratio(best):.2f}× on {place(best)}"
    if f"{_ratio(worst):.2f}" == f"{_ratio(best):.2f}":
        return f"{_ratio(best):.2f}× at all {len(rows)} levels"
    return f"{_ratio(worst):.2f}× ({place(worst)}) to {_ratio(best):.2f}× ({place(best)})"


def _ends(rows: Sequence[Summary]) -> tuple[Summary, Summary]:
    """Slowest and fastest beside the baseline."""
    ordered = sorted(rows, key=_ratio)
    return ordered[0], ordered[-1]


def _ratio(row: Summary) -> float:
    return row.speedup_ratio or 0.0


def place(row: Summary) -> str:
    """`copy at 1 stream`."""
    if not row.concurrency:
        return f"{row.workload} in an open loop"
    return f"{row.workload} at {counted(row.concurrency, 'stream')}"
