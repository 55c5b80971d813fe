"""What a run of `suites/llamacpp.yaml` must show."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from specbench.analysis import Judgement
from specbench.analysis.cells import Arm, Cell, arms_of, suite_of
from specbench.analysis.judge import judge_run
from specbench.analysis.metrics import counted_accept_length, pooled_accept_length
from specbench.dialects.llamacpp_log import LlamaLog
from specbench.dialects.metrics import counted_between
from specbench.store import StoredRun
from tests.realengine.outcome_any import against_numbers, other_answers, rows, sums

DRAFTING: Final = ("good", "target-as-drafter", "weak", "lookup")
DRAFT_TOKENS: Final = 4
"""K of every variant."""
ACCEPTED_AT_LEAST: Final = 3.0
"""AL of the two drafters that hold the target's own weights; 5 is the ceiling."""
SILENT: Final = {
    "no-type": (r"without --spec-type it is never asked", r"loading draft model '"),
    "other-vocabulary": (r"another vocabulary than the target", r"vocab"),
    "eagle3-of-a-plain-drafter": (r"EAGLE-3 drafter was asked for and the given one is none", r"draft model is not eagle3"),
}
"""What the finding must say, and the line of the log that it must show."""
RATE_ROUNDING: Final = 0.00001
"""Of the log's `draft acceptance`, and a little for the binary fraction."""


def faults(stored: StoredRun) -> Iterator[str]:
    """A sentence each."""
    judgement, arms = judge_run(stored), arms_of(suite_of(stored), stored.trials)
    if not stored.run.complete:
        yield "the run did not come to its end"
    for name, arm in arms.items():
        if arm.failures:
            yield f"{name} failed: {arm.failures[0].cause}"
    yield from _lengths(judgement)
    for name in DRAFTING:
        yield from against_numbers(judgement, name)
        yield from _sources(name, arms[name])
        yield from _logged(name, stored, arms[name])
    for name, words in SILENT.items():
        yield from _silent(name, words, judgement, arms[name])
    for name in (*DRAFTING, *SILENT):
        yield from other_answers(arms[name], arms["baseline"])
    yield from _typeless(stored)


def _lengths(judgement: Judgement) -> Iterator[str]:
    """That the target as its own drafter loses is seen in the table and not demanded: a machine that does else at the
    baseline's turn makes it win."""
    for name in ("good", "target-as-drafter"):
        lengths = [row.accept_length or 0 for row in rows(judgement, name)]
        if min(lengths, default=0) < ACCEPTED_AT_LEAST:
            yield f"{name}: AL {lengths}, should be at least {ACCEPTED_AT_LEAST}"
    copied = [row.accept_length or 0 for row in rows(judgement, "lookup") if row.workload == "copy"]
    if min(copied, default=0) <= 1:
        yield f"lookup: AL {copied} where the prompt holds the answer, should be above 1"


def _sources(name: str, arm: Arm) -> Iterator[str]:
    """The answers' `timings` and the counters of `/metrics` must be one, to the last token."""
    for cell in arm.cells.values():
        place = f"{name}, {cell.workload} at {cell.concurrency}"
        counted = [counted_between(*load.counters) if load.counters else None for load in cell.loads]
        theirs = [(one.accepted_tokens, one.proposed_tokens) for one in counted if one is not None]
        ours = sums(cell)[1:]
        if len(theirs) < len(counted) or not counted:
            yield f"{place}: no counters of /metrics"
        elif ours != [sum(each) for each in zip(*theirs, strict=True)]:
            yield f"{place}: accepted, proposed are {ours} by the answers and {theirs} by /metrics"
        positions = max((len(one.position_tokens) for one in counted if one is not None), default=0)
        if positions > DRAFT_TOKENS:
            yield f"{place}: {positions} tokens were proposed at once, not {DRAFT_TOKENS}"
        exact, by_metrics = pooled_accept_length(cell.served), counted_accept_length(cell)
        if exact != by_metrics:
            yield f"{place}: AL {exact} by the answers and {by_metrics} by /metrics"


def _logged(name: str, stored: StoredRun, arm: Arm) -> Iterator[str]:
    """Each answer's counts stand in the server's log, in a line whose rate is theirs."""
    logged: Counter[tuple[int, int]] = Counter()
    for trial in stored.trials:
        if trial.record.trial.variant != name:
            continue
        reader = LlamaLog()
        for line in (Path(trial.folder) / "server.log").read_text(encoding="utf-8", errors="replace").splitlines():
            sample = reader.parse_line(line).sample
            if sample is None:
                continue
            counts = int(sample.extra["accepted"]), int(sample.extra["drafted"])
            logged[counts] += 1
            if sample.accept_rate is not None and abs(counts[0] / counts[1] - sample.accept_rate) > RATE_ROUNDING:
                yield f"{name}: the log says {sample.accept_rate} of {counts[0]} accepted and {counts[1]} drafted"
    ours = Counter(
        (one.correct_tokens or 0, one.proposed_tokens)
        for cell in arm.cells.values()
        for one in cell.served
        if one.proposed_tokens
    )
    if missing := ours - logged:
        yield f"{name}: the log lacks answers with accepted, drafted {sorted(missing)}"


def _silent(name: str, words: tuple[str, str], judgement: Judgement, arm: Arm) -> Iterator[str]:
    """Told as what it is, with its cause from the log."""
    for row in rows(judgement, name):
        if row.verdict != "speculation_inactive" or row.accept_length is not None:
            yield f"{name}, {row.workload}: verdict {row.verdict}, AL {row.accept_length}, should be speculation_inactive"
    found = [one for one in judgement.findings if (one.code, one.variant) == ("speculation_inactive", name)]
    message, line = words
    if len(found) != 1 or not re.search(message, found[0].message) or not re.search(line, found[0].evidence):
        yield f"{name}: {[(one.message, one.evidence) for one in found]}, should say {words}"
    verdict = next(one for one in judgement.verdicts if one.variant == name)
    if not re.search(message, verdict.sentence):
        yield f"{name}: the sentence does not name the cause: {verdict.sentence}"
    yield from (f"{name}, {cell.workload}: drafts were counted" for cell in arm.cells.values() if _drafted(cell))


def _drafted(cell: Cell) -> bool:
    grown = [counted_between(*load.counters) for load in cell.loads if load.counters]
    return any(one is not None and one.draft_count for one in grown)


def _typeless(stored: StoredRun) -> Iterator[str]:
    """The first fault must be a flag that is missing, not one that says none."""
    launched: Mapping[str, tuple[str, ...]] = {one.record.trial.variant: one.record.argv for one in stored.trials}
    argv = launched.get("no-type", ())
    if "-md" not in argv or any(word.startswith("--spec-type") for word in argv):
        yield f"no-type was launched by {' '.join(argv)}"
