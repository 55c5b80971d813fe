"""Whether two arms may be compared at a level: a speed-up between servers that did different work is no speed-up."""

from collections import Counter
from collections.abc import Collection, Iterator
from statistics import median
from typing import Any, Final

from msgspec import Struct

from specbench.analysis import verdicts
from specbench.analysis.cells import Arm, Cell, Key
from specbench.units import counted

OF_SPECULATION: Final = ("algorithm", "draft_tokens", "steps", "topk", "draft_model_path", "ngram", "speculation")
"""Resolved facts that are meant to differ."""
EXPECTED: Final = ("decode_log_interval", "version_commit")
"""May differ, and mean nothing."""


class Difference(Struct, frozen=True, kw_only=True):
    """A setting that a variant's server resolved otherwise than the baseline's; None: it said nothing of it."""

    variant: str
    setting: str
    baseline_value: Any
    variant_value: Any
    asked: bool
    """The suite asks for it; else it may explain a speed-up by itself."""


def differences(arm: Arm, baseline: Arm) -> Iterator[Difference]:
    """By the servers' own word, in the order of settings' names. None where one of the two said nothing."""
    if arm is baseline or not arm.resolved or not baseline.resolved:
        return
    wanted = {*OF_SPECULATION, *({"cuda_graph"} if arm.variant.cuda_graph is not None else ())}
    for setting in sorted(set(baseline.resolved) | set(arm.resolved)):
        ours, theirs = arm.resolved.get(setting), baseline.resolved.get(setting)
        if ours != theirs and setting not in EXPECTED:
            yield Difference(
                variant=arm.variant.name,
                setting=setting,
                baseline_value=theirs,
                variant_value=ours,
                asked=setting in wanted or setting.startswith(("spec", "draft")) or _is_wanted(setting, arm, baseline),
            )


def admitted(arm: Arm, key: Key) -> int | None:
    """What `arm` let run at once at this level, when that is fewer than offered.

    A queue counts as one only when half of the decode lines show it: a burst queues for a moment everywhere.
    """
    cell = arm.cells[key]
    running = [one.running_requests for one in cell.samples if one.running_requests is not None]
    queued = [one.queue_requests for one in cell.samples if one.queue_requests is not None]
    queue_count = int(median(queued)) if queued else None
    return verdicts.admission_limit(key[1], arm.admission_limit, max(running, default=None), queue_count)


MATTERS: Final = ("model_path", "dtype", "kv_cache_dtype", "tensor_parallel", "data_parallel", "chat_template_sha256")
"""Resolved facts without which two servers do different work, speculation aside."""


def obstacle(arm: Arm, baseline: Arm, key: Key) -> str | None:
    """Why the two can't be compared at this level, in half a sentence; None when they can."""
    ours, theirs = admitted(arm, key), admitted(baseline, key)
    if not verdicts.same_admission(key[1], ours, theirs):
        return (
            f"of {key[1]} offered requests '{arm.variant.name}' runs {ours or key[1]} at once "
            f"and '{baseline.variant.name}' {theirs or key[1]}"
        )
    for fact in MATTERS:
        mine, its = arm.resolved.get(fact), baseline.resolved.get(fact)
        if mine is not None and its is not None and mine != its and not _is_wanted(fact, arm, baseline):
            return f"'{arm.variant.name}' runs with {fact} {mine} and '{baseline.variant.name}' with {its}"
    for one in (arm, baseline):
        cell = one.cells[key]
        if failed_ratio(cell) > verdicts.FAILED_LIMIT_RATIO:
            failed = len(cell.requests) - len(cell.served)
            return f"{failed} of {counted(len(cell.requests), 'request')} of '{one.variant.name}' failed"
    return None


ADMISSION_FLAG: Final = {"sglang": "--max-running-requests", "vllm": "--max-num-seqs", "llamacpp": "--parallel"}
FACT_FLAG: Final = {
    "model_path": "`model`",
    "dtype": "`--dtype`",
    "kv_cache_dtype": "`--kv-cache-dtype`",
    "tensor_parallel": "`tensor_parallel`",
    "data_parallel": "`--data-parallel-size`",
    "chat_template_sha256": "`--chat-template`",
}
"""Where a suite states what `MATTERS` names."""


def remedy(arm: Arm, baseline: Arm, keys: Collection[Key]) -> str:
    """What to change so that the two can be compared at these levels, by the first obstacle; then both are run again."""
    key = next(iter(keys))
    if not verdicts.same_admission(key[1], admitted(arm, key), admitted(baseline, key)):
        most = max(streams for _, streams in keys)
        flag = ADMISSION_FLAG.get(arm.variant.engine)
        room = "; where memory is too small for that, take the larger numbers out of `concurrency`"
        if flag is None:
            return f"Let both servers run {most} requests at once{room}."
        return f"Write `args: [{flag}, {most}]` under the suite's `server:`, which holds for every variant{room}."
    for fact in MATTERS:
        mine, its = arm.resolved.get(fact), baseline.resolved.get(fact)
        if mine is not None and its is not None and mine != its and not _is_wanted(fact, arm, baseline):
            return f"State {FACT_FLAG[fact]} once for all variants (under the suite's `server:`), not for one of them."
    worse = arm if failed_ratio(arm.cells[key]) > verdicts.FAILED_LIMIT_RATIO else baseline
    errors = Counter(one.error for one in worse.cells[key].requests if one.error is not None)
    error = errors.most_common(1)[0][0] if errors else "see failed_requests"
    return f"Remove why requests of '{worse.variant.name}' fail, mostly: {error}."


def _is_wanted(fact: str, arm: Arm, baseline: Arm) -> bool:
    """The suite itself asks for more GPUs in one of them."""
    return fact == "tensor_parallel" and arm.variant.server.tensor_parallel != baseline.variant.server.tensor_parallel


def failed_ratio(cell: Cell) -> float:
    """Of the measured requests; 0 of none."""
    return 1 - len(cell.served) / len(cell.requests) if cell.requests else 0.0
