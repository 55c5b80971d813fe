"""Holds a run of `suites/vllm-cpu.yaml` to what it must show: python -m tests.realengine.outcome RESULTS-FOLDER

Nothing here is a fixed speed: verdicts on speed must follow from the measured numbers. Exit code 1 and a line for each
thing that is not so.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from specbench.analysis import Judgement, Summary
from specbench.analysis.cells import Arm, Cell, arms_of, suite_of
from specbench.analysis.judge import judge_run
from specbench.analysis.metrics import counted_accept_length, logged_accept_length, pooled_accept_length
from specbench.dialects.metrics import counted_between
from specbench.store import StoredRun, read_run

SPECULATING: Final = ("lookup", "draft-model", "eagle3", "eagle3-untrained", "copy-of-target")
ALWAYS_DRAFTING: Final = ("draft-model", "eagle3", "eagle3-untrained", "copy-of-target")
DEATHS: Final = {"two-states": "died_under_load", "wrong-width": "died_while_loading"}
TRAINED_AT_LEAST: Final = 1.8
CEILING: Final = 4.0
SAME_ANSWERS_AT_LEAST: Final = 0.9
"""Share of answers equal to the baseline's. A batch of another shape adds in another order: near ties may turn over."""
OWN_PASSES_RATIO: Final = 0.15
"""Other prompts and longer answers than those of the training's own figure."""
LOG_ROUNDING: Final = 0.005


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
        yield from _answers(arms[name], arms["baseline"])


def _rows(judgement: Judgement, variant: str) -> list[Summary]:
    return [row for row in judgement.summaries if row.variant == variant]


def _verdicts(judgement: Judgement) -> Iterator[str]:
    for name in ("lookup", "draft-model", "eagle3", "copy-of-target"):
        for row in _rows(judgement, name):
            right = "healthy" if (row.speedup_ratio or 0) >= 1 else "slower_than_baseline"
            if row.verdict != right:
                yield f"{name}, {row.workload} at {row.concurrency}: verdict {row.verdict}, the numbers say {right}"
    for row in _rows(judgement, "eagle3-untrained"):
        if row.verdict != "dead_drafter":
            yield f"eagle3-untrained, {row.workload} at {row.concurrency}: verdict {row.verdict}, should be dead_drafter"
    yield from _lengths_in_table(judgement)


def _lengths_in_table(judgement: Judgement) -> Iterator[str]:
    trained = [row.accept_length or 0 for row in _rows(judgement, "eagle3")]
    if min(trained, default=0) < TRAINED_AT_LEAST:
        yield f"eagle3: AL {trained}, should be at least {TRAINED_AT_LEAST}"
    for row in _rows(judgement, "copy-of-target"):
        if not 0.95 * CEILING <= (row.accept_length or 0) <= CEILING:
            yield f"copy-of-target: AL {row.accept_length}, should be nearly {CEILING}"


def _as_trained(target: str, judgement: Judgement) -> Iterator[str]:
    """vLLM and our own forward passes must agree on the head, so that neither's layout or positions are wrong."""
    expected = json.loads((Path(target).parent / "made.json").read_text(encoding="utf-8"))["eagle3"]
    for row in _rows(judgement, "eagle3"):
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
        ours, theirs = _sums(cell), [0, 0, 0]
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


def _sums(cell: Cell) -> list[int]:
    names = ("verify_count", "correct_tokens", "proposed_tokens")
    return [sum(getattr(one, name) or 0 for one in cell.served) for name in names]


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


def _answers(arm: Arm, baseline: Arm) -> Iterator[str]:
    """Speculation changes the speed, never a greedy answer."""
    for key, cell in arm.cells.items():
        plain = {one.prompt_id: one.output_text for one in baseline.cells[key].served}
        same = [one.output_text == plain.get(one.prompt_id) for one in cell.served]
        if not same or sum(same) < SAME_ANSWERS_AT_LEAST * len(same):
            yield f"{arm.variant.name}, {key[0]} at {key[1]}: {sum(same)} of {len(same)} answers are the baseline's"


def told(stored: StoredRun) -> Iterator[str]:
    """AL of each level by its three sources, and how many answers are the baseline's."""
    arms = arms_of(suite_of(stored), stored.trials)
    for name in SPECULATING:
        for key, cell in arms[name].cells.items():
            plain = {one.prompt_id: one.output_text for one in arms["baseline"].cells[key].served}
            same = sum(one.output_text == plain.get(one.prompt_id) for one in cell.served)
            sources = (pooled_accept_length(cell.served), counted_accept_length(cell), logged_accept_length(cell))
            lengths = " ".join("    –" if one is None else f"{one:5.3f}" for one in sources)
            place = f"{name:18} {key[0]:6} {key[1]}"
            yield f"{place}  AL answers, metrics, log: {lengths}  same answers {same}/{len(cell.served)}"


def main(folder: str) -> int:
    """0 when all is as it must be."""
    stored = read_run(Path(folder))
    for line in told(stored):
        sys.stdout.write(f"{line}\n")
    found = list(faults(stored))
    for line in found:
        sys.stderr.write(f"NOT RIGHT: {line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
