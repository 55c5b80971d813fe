"""What a run of `suites/vllm-cpu.yaml` must show."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from specbench.analysis import Judgement
from specbench.analysis.cells import Arm, Cell, arms_of, suite_of
from specbench.analysis.judge import judge_run
from specbench.analysis.metrics import counted_accept_length, pooled_accept_length
from specbench.dialects.metrics import counted_between
from specbench.store import StoredRun, StoredTrial
from specbench.units import Second
from tests.realengine.outcome_any import against_numbers, other_answers, rows, sums

SPECULATING: Final = ("lookup", "draft-model", "eagle3", "eagle3-untrained", "copy-of-target")
ALWAYS_DRAFTING: Final = ("draft-model", "eagle3", "eagle3-untrained", "copy-of-target")
DEATHS: Final = {"two-states": "died_under_load", "wrong-width": "died_while_loading"}
TRAINED_AT_LEAST: Final = 1.8
CEILING: Final = 4.0
OWN_PASSES_RATIO: Final = 0.15
"""Other prompts and longer answers than those of the training's own figure."""
LOG_ROUNDING: Final = 0.005
LINE_LATE_S: Final = 1.0
"""A line this long after a reading of the counters was printed after it too."""


def faults(stored: StoredRun) -> Iterator[str]:
    """A sentence each."""
    judgement, arms = judge_run(stored), arms_of(suite_of(stored), stored.trials)
    if not stored.run.complete:
        yield "the run did not come to its end"
    yield from _verdicts(judgement)
    yield from _as_trained(suite_of(stored).model.path, judgement)
    yield from _deaths(arms)
    for name in SPECULATING:
        yield from _lengths(name, arms[name])
        yield from other_answers(arms[name], arms["baseline"])
    for trial in stored.trials:
        yield from log_against_counters(trial)


def _verdicts(judgement: Judgement) -> Iterator[str]:
    for name in ("lookup", "draft-model", "eagle3", "copy-of-target"):
        yield from against_numbers(judgement, name)
    for row in rows(judgement, "eagle3-untrained"):
        if row.verdict != "dead_drafter":
            yield f"eagle3-untrained, {row.workload} at {row.concurrency}: verdict {row.verdict}, should be dead_drafter"
    yield from _lengths_in_table(judgement)


def _lengths_in_table(judgement: Judgement) -> Iterator[str]:
    trained = [row.accept_length or 0 for row in rows(judgement, "eagle3")]
    if min(trained, default=0) < TRAINED_AT_LEAST:
        yield f"eagle3: AL {trained}, should be at least {TRAINED_AT_LEAST}"
    for row in rows(judgement, "copy-of-target"):
        if not 0.95 * CEILING <= (row.accept_length or 0) <= CEILING:
            yield f"copy-of-target: AL {row.accept_length}, should be nearly {CEILING}"


def _as_trained(target: str, judgement: Judgement) -> Iterator[str]:
    """vLLM and our own forward passes must agree on the head, so that neither's layout or positions are wrong."""
    expected = json.loads((Path(target).parent / "made.json").read_text(encoding="utf-8"))["eagle3"]
    for row in rows(judgement, "eagle3"):
        if row.workload == "prose" and abs((row.accept_length or 0) / expected - 1) > OWN_PASSES_RATIO:
            yield f"eagle3, prose at {row.concurrency}: AL {row.accept_length}, by our own forward passes {expected}"


def _deaths(arms: dict[str, Arm]) -> Iterator[str]:
    for name, kind in DEATHS.items():
        failures = arms[name].failures
        if not failures or any(one.kind != kind or "shape" not in one.cause for one in failures):
            yield f"{name}: {[(one.kind, one.cause) for one in failures]}, should have {kind} of a matrix shape"
    for name in ("baseline", *SPECULATING):
        if arms[name].failures:
            yield f"{name} failed: {arms[name].failures[0].cause}"


def _lengths(name: str, arm: Arm) -> Iterator[str]:
    """Our pooled counters, vLLM's and its log's must be one."""
    for cell in arm.cells.values():
        place = f"{name}, {cell.workload} at {cell.concurrency}"
        counted = [counted_between(*load.counters) if load.counters else None for load in cell.loads]
        ours, theirs = sums(cell), [0, 0, 0]
        for one in counted:
            if one is None:
                yield f"{place}: no counters of /metrics"
                return
            theirs = [
                a + b for a, b in zip(theirs, (one.draft_count, one.accepted_tokens, one.proposed_tokens), strict=True)
            ]
        if ours[1:] != theirs[1:] or (name in ALWAYS_DRAFTING and ours != theirs):
            yield f"{place}: steps, accepted, proposed are {ours} by the answers and {theirs} by /metrics"
        exact, by_metrics = pooled_accept_length(cell.served), counted_accept_length(cell)
        if name in ALWAYS_DRAFTING and exact != by_metrics:
            yield f"{place}: AL {exact} by the answers and {by_metrics} by /metrics"
        yield from _logged(place, cell)


def _logged(place: str, cell: Cell) -> Iterator[str]:
    """Each line's length must be its own counts' within the rounding; its intervals need not be the level's."""
    for sample in cell.samples:
        accepted, drafted = sample.extra.get("accepted"), sample.extra.get("drafted")
        if not isinstance(accepted, int) or not isinstance(drafted, int) or sample.accept_length is None:
            yield f"{place}: a log line without its counts: {sample}"
        elif not cell.proposed_tokens or drafted < cell.proposed_tokens:
            continue
        elif abs(1 + accepted / (drafted / cell.proposed_tokens) - sample.accept_length) > LOG_ROUNDING and (
            drafted % cell.proposed_tokens == 0 and "lookup" not in place
        ):
            yield f"{place}: the log says {sample.accept_length} and counts {accepted} of {drafted}"


def log_against_counters(trial: StoredTrial) -> Iterator[str]:
    """The log tells each interval's accepted and drafted tokens: its lines up to a moment hold no more than the counters at
    that moment, and its lines up to the next one no less."""
    lines = [(one.at_s, one.value["extra"]) for one in trial.observations if one.name == "decode"]
    for one in trial.observations:
        if one.source != "metrics" or not isinstance(one.value, dict) or "counters" not in one.value:
            continue
        counted = counted_between({}, one.value["counters"])
        if counted is None:
            continue
        there = counted.accepted_tokens, counted.proposed_tokens
        before = _logged_until(one.at_s, lines)
        following = next((at_s for at_s, _ in lines if at_s > one.at_s + LINE_LATE_S), None)
        after = there if following is None else _logged_until(following, lines)
        if not all(least <= count <= most for least, count, most in zip(before, there, after, strict=True)):
            place = f"{trial.record.trial.variant} at {one.at_s:.1f} s: accepted, drafted"
            yield f"{place} are {there} by /metrics, {before} by the log until then and {after} by its next line"


def _logged_until(until_s: Second, lines: list[tuple[Second, dict[str, int]]]) -> tuple[int, int]:
    """Accepted and drafted tokens of the lines read by then."""
    inside = [extra for at_s, extra in lines if at_s <= until_s]
    return sum(one["accepted"] for one in inside), sum(one["drafted"] for one in inside)
