"""A comparison's numbers and answers as words. All forms say the same."""

from collections.abc import Iterable, Sequence
from typing import Final

from specbench.analysis.comparing import Answer, Change, Comparison, PromptAcceptance, VariantComparison
from specbench.render import words
from specbench.units import counted

LABELS: Final = {
    "output_tps": "tok/s",
    "accept_length": "AL",
    "ttft_p50_s": "TTFT p50",
    "tpot_p50_s": "TPOT p50",
    "ttft_p99_s": "TTFT p99",
    "tpot_p99_s": "TPOT p99",
    "goodput_rps": "goodput",
}
VERDICTS: Final = {"pass": "PASS", "fail": "FAIL", "inconclusive": "INCONCLUSIVE", "refused": "NOT COMPARABLE"}
URGENCY: Final = ("fail", "refused", "inconclusive", "pass")
ENOUGH: Final = "9 times in 10"
HUGE_PERCENT: Final = 1e5
HEADINGS: Final = ("metric", "A", "B", "change", "interval", "changed?", "gate", "to decide", "would see")


def label(metric: str) -> str:
    """`tok/s`."""
    return LABELS.get(metric, metric)


def value(metric: str, number: float) -> str:
    """With its unit where the name does not carry one."""
    if metric.endswith("_s"):
        return f"{words.milliseconds(number)} ms"
    return words.rate(number) if metric == "output_tps" and number >= 10 else words.length(number)


def percent(ratio: float, signed: bool = True) -> str:
    """`−4.8 %`; two digits below one percent."""
    size = abs(100 * ratio)
    text = f"{size:.2f}" if size < 0.995 else f"{size:.1f}" if size < HUGE_PERCENT else f"{size:.1e}"
    text = text.removesuffix(".0") if not signed else text
    sign = "" if not signed or float(text) == 0 else "−" if ratio < 0 else "+"
    return f"{sign}{text} %"


def interval(change: Change | PromptAcceptance) -> str:
    """`−5.9 to −3.7`."""
    if change.low_ratio is None or change.high_ratio is None:
        return words.NOTHING
    return f"{percent(change.low_ratio)[:-2]} to {percent(change.high_ratio)[:-2]}"


def changed(answer: Answer) -> str:
    """`yes, worse`. What was not seen may still be there."""
    return f"yes, {answer.direction}" if answer.changed else "not seen"


def gate(answer: Answer) -> str:
    """PASS, FAIL or INCONCLUSIVE."""
    return answer.gate or "not gated"


def needed(answer: Answer) -> str:
    """How many pairs of launches, in all, decide an open gate."""
    if answer.gate != "INCONCLUSIVE":
        return words.NOTHING
    return f"{answer.launches_needed_count or '200+'} pairs"


def row(answer: Answer) -> tuple[str, ...]:
    """One line of the table, under `HEADINGS`."""
    change = answer.change
    return (
        label(change.metric),
        value(change.metric, change.a),
        value(change.metric, change.b),
        percent(change.change_ratio),
        interval(change),
        changed(answer),
        gate(answer),
        needed(answer),
        percent(answer.detectable_ratio, signed=False),
    )


def title(comparison: Comparison) -> str:
    """`specbench compare · kimi · SIMULATED`."""
    stamp = " · SIMULATED" if comparison.simulated else ""
    return f"specbench compare · {words.clean(comparison.suite_name)}{stamp}"


def sides(comparison: Comparison) -> tuple[str, str]:
    """Which is A and which is B."""
    first = comparison.variants[0]
    a, b = first.a, first.b
    if comparison.within:
        return f"A  {words.clean(a.variant)}, in {words.clean(a.folder)}", f"B  {words.clean(b.variant)}, in the same run"
    a_text, b_text = (f"{words.clean(one.folder)} (started {words.clean(one.started_utc)})" for one in (a, b))
    return f"A  {a_text}", f"B  {b_text}"


def ranked(comparison: Comparison) -> list[VariantComparison]:
    """What went wrong first; otherwise in the suite's order."""
    return sorted(comparison.variants, key=lambda one: list(URGENCY).index(one.verdict))


def headline(variant: VariantComparison, margin: float) -> str:
    """The sentence that stands for a variant."""
    name = words.clean(variant.name)
    if variant.verdict == "refused":
        return f"{name}: not comparable, {_reasons(len(variant.refusals))}"
    if variant.verdict == "fail":
        failing = [one for one in variant.answers if one.gate == "FAIL"]
        return f"{name}: {_and(map(_loss, failing))}; that is beyond the margin of {percent(margin, signed=False)}"
    if variant.verdict == "inconclusive":
        open_ones = [one for one in variant.answers if one.gate == "INCONCLUSIVE"]
        return f"{name}: can't tell yet: {'; '.join(map(_open, open_ones))}"
    return f"{name}: {_passed(variant.answers, margin)}"


def _reasons(count: int) -> str:
    return "for this reason:" if count == 1 else f"for these {count} reasons:"


def _loss(answer: Answer) -> str:
    return f"{label(answer.change.metric)} {percent(answer.change.change_ratio)} ({interval(answer.change)})"


def _open(answer: Answer) -> str:
    if answer.launches_needed_count is None:
        return f"{_loss(answer)} would need over 200 pairs of launches"
    more = answer.launches_needed_count - answer.change.pair_count
    return f"{_loss(answer)} needs about {counted(more, 'more pair')} of launches"


def _passed(answers: Sequence[Answer], margin: float) -> str:
    gated = [one for one in answers if one.gate is not None]
    text = f"{_and(label(one.change.metric) for one in gated)}: not {percent(margin, signed=False)} worse than A"
    moved = [f"{_loss(one)} is {one.direction}" for one in answers if one.changed]
    return f"{text}; {_and(moved)}" if moved else f"{text}; no change seen"


def _and(texts: Iterable[str]) -> str:
    listed = list(texts)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}" if listed else "nothing"


def circumstances(comparison: Comparison, variant: VariantComparison) -> str:
    """`8 pairs of launches · all levels · openvino 2026.4`."""
    pairs = max((one.change.pair_count for one in variant.answers), default=0)
    engines = dict.fromkeys((words.clean(variant.a.engine), words.clean(variant.b.engine)))
    return f"{counted(pairs, 'pair')} of launches · {words.clean(comparison.level)} · {' → '.join(engines)}"


def under_test(variant: VariantComparison) -> tuple[str, ...]:
    """`engine_version: 0.5.22 → 0.5.23`, one a declared key."""
    return tuple(f"{words.clean(one.key)}: {_cut(one.a)} → {_cut(one.b)}" for one in variant.under_test)


def _cut(text: str) -> str:
    shown = words.clean(text)
    return shown if len(shown) <= 160 else f"{shown[:157]}…"


def refusals(variant: VariantComparison) -> tuple[str, ...]:
    """One reason a line."""
    return tuple(words.clean(one.message) for one in variant.refusals)


def diagnostic(found: PromptAcceptance) -> str:
    """Said apart from the answers, for it is none."""
    return (
        f"Diagnostic, no verdict: on the {counted(found.prompt_count, 'prompt')} that both sides answered AL is "
        f"{found.a_accept_length:.3f} and {found.b_accept_length:.3f}, {percent(found.change_ratio)} "
        f"({interval(found)} at {100 * (1 - found.alpha_ratio):.0f} %, a prompt one cluster)"
    )


def legend(comparison: Comparison) -> tuple[str, ...]:
    """What the headings mean."""
    level, margin = f"{100 * (1 - comparison.alpha_ratio):g} %", percent(comparison.margin_ratio, signed=False)
    tests = "1 test" if comparison.family_count == 1 else f"{comparison.family_count} tests"
    return (
        f"interval: at {level} or wider, as Holm over {tests} asks; it leaves 0 out exactly when “changed?” says yes",
        f"gate: FAIL: worse by more than {margin}; PASS: not; INCONCLUSIVE: these launches can't tell; “to decide”: "
        "pairs in all that would",
        f"would see: the smallest change that so many pairs of launches find {ENOUGH}",
    )


def level_metrics(variant: VariantComparison) -> tuple[str, ...]:
    """Metrics that were measured at some level, in the order of the table."""
    return tuple(metric for metric in LABELS if any(one.metric == metric for one in variant.levels))


def level_rows(variant: VariantComparison) -> tuple[tuple[str, ...], ...]:
    """A level a row: its name, then the change of each of `level_metrics`."""
    keys = dict.fromkeys((one.workload, one.concurrency) for one in variant.levels)
    found = {(one.workload, one.concurrency, one.metric): one for one in variant.levels}
    return tuple(
        (words.place(*key), *(_short(found.get((*key, metric))) for metric in level_metrics(variant))) for key in keys
    )


def _short(change: Change | None) -> str:
    return words.NOTHING if change is None else percent(change.change_ratio)[:-2]
