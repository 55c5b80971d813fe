"""Figures and strings as a person reads them. The only place where seconds become milliseconds and ratios percent."""

import re
from typing import Final

from specbench.analysis import Judgement, Quantiles, Summary
from specbench.units import counted

NOTHING: Final = "–"
"""Stands where nothing was measured; never a zero."""

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-Z\\-~])")
_CONTROLS: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\u061c\u180e\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """One line without control characters, terminal escapes or direction marks: results hold what a server printed."""
    return _CONTROLS.sub("", _ESCAPES.sub("", re.sub(r"[\t\r\n]+", " ", text)))


def rate(value_tps: float | None) -> str:
    """tok/s, three figures or more."""
    if value_tps is None:
        return NOTHING
    return f"{value_tps:.1f}" if value_tps < 1000 else f"{value_tps:.0f}"


def times(ratio: float | None) -> str:
    """A speed-up; the heading carries the sign."""
    return NOTHING if ratio is None else f"{ratio:.2f}"


def speedup(row: Summary) -> str:
    """`1.16`, or with three launches or more `1.16 (1.10–1.22)`."""
    if row.speedup_ratio is None or row.speedup_low_ratio is None or row.speedup_high_ratio is None:
        return times(row.speedup_ratio)
    return f"{times(row.speedup_ratio)} ({times(row.speedup_low_ratio)}–{times(row.speedup_high_ratio)})"


def length(value: float | None) -> str:
    """Tokens a step."""
    return NOTHING if value is None else f"{value:.2f}"


def percent(ratio: float | None) -> str:
    """Without the sign."""
    return NOTHING if ratio is None else f"{100 * ratio:.0f}"


def milliseconds(value_s: float) -> str:
    """Three figures or more."""
    value = 1000 * value_s
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def pair_ms(quantiles: Quantiles | None, mark: str = "") -> str:
    """`p50/p99`."""
    if quantiles is None:
        return NOTHING
    return f"{mark}{milliseconds(quantiles.p50_s)}/{milliseconds(quantiles.p99_s)}"


def accept_length(row: Summary) -> str:
    """`~` before an estimate from the log."""
    return ("~" if row.accept_source == "log" else "") + length(row.accept_length)


def accept_rate(row: Summary) -> str:
    """`37 (3)`: percent, and K behind it."""
    if row.accept_rate_ratio is None:
        return NOTHING
    return f"{percent(row.accept_rate_ratio)} ({row.proposed_tokens})"


def failures(row: Summary) -> str:
    """Failed requests; nothing where none was sent."""
    return str(row.failed_count) if row.request_count else NOTHING


def verdict(code: str) -> str:
    """A code as words."""
    return SHORT_VERDICTS.get(code, code.replace("_", " "))


SHORT_VERDICTS: Final = {
    "slower_than_baseline": "slower",
    "mixed_graph_regimes": "mixed graphs",
    "concurrency_capped": "capped",
    "speculation_inactive": "not speculating",
    "not_significant": "no difference",
}


def place(workload: str, concurrency: int) -> str:
    """`chat, 8 streams`."""
    return f"{clean(workload)}, {streams(concurrency)}"


def streams(concurrency: int) -> str:
    """`8 streams`; an open loop holds no number of them."""
    return counted(concurrency, "stream") if concurrency else "open loop"


def streams_count(concurrency: int) -> str:
    """`8`, or `open`."""
    return str(concurrency or "open")


def banner(simulated: bool, rehearsal: str | None) -> str | None:
    """The line that stands above everything made by a cost model; None for a real run."""
    if not simulated:
        return clean(rehearsal) if rehearsal else None
    text = "SIMULATED: these figures come from a cost model, not from a real engine."
    how = clean(rehearsal or "")
    return f"{text} {how[0].upper()}{how[1:]}" if how else text


def no_request_failed(judgement: Judgement) -> bool:
    """Whether some were sent, and all ended well; those of a launch that failed stand in no row."""
    rows = judgement.summaries
    fell = any(one.code == "launch_failed" for one in judgement.findings)
    return any(row.request_count for row in rows) and not fell and not any(row.failed_count for row in rows)
