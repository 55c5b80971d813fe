"""Stored records grouped by what they are compared by: an arm a variant, a cell a workload at one concurrency."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from specbench.analysis.dropped import DrafterLog, drafter_log
from specbench.dialects import DecodeSample
from specbench.errors import StoreError
from specbench.records import Failure, LevelRecord, Observation, RequestRecord
from specbench.store import StoredRun, StoredTrial
from specbench.streams import OpenRun
from specbench.suite import Slo, Speculation, Suite, Variant, Workload
from specbench.timing import is_impossible
from specbench.units import PerSecond, counted

ALL_WORKLOADS = "all"
"""Name of the workload in a cell that pools them all."""

STOPPED = "interrupted"
"""Kind of the failure of a launch that the user or the system stopped."""

Key = tuple[str, int]
"""Workload, concurrency."""


class Load(Struct, frozen=True, kw_only=True):
    """What one launch saw of one level. Warm-up is left out."""

    block_index: int = 0
    """Of its launch: what pairs it with a launch of another variant."""
    requests: tuple[RequestRecord, ...]
    """Measured requests, failed ones included."""
    partial: bool = False
    """Its launch was stopped, or cut off, after this level."""
    impossible_count: int = 0
    """Further ones whose records can't be true: left out."""
    samples: tuple[DecodeSample, ...] = ()
    """Decode lines read while the level ran."""
    counters: tuple[dict[str, Any], dict[str, Any]] | None = None
    """`/metrics` before and after the level."""


class Cell(Struct, frozen=True, kw_only=True):
    """One workload at one concurrency of one variant, over all its launches."""

    workload: str
    concurrency: int
    loads: tuple[Load, ...]
    proposed_tokens: int | None = None
    """K; None without speculation."""
    slo: Slo | None = None
    """Of its workload."""
    rate_rps: PerSecond | None = None
    """Arrivals offered in an open loop; None in a closed one, or by a trace."""
    beyond: bool = False
    """A level of a sweep that this variant did not come to, for its goodput had stopped growing."""

    @property
    def requests(self) -> tuple[RequestRecord, ...]:
        """Of all launches, failed ones included."""
        return tuple(request for load in self.loads for request in load.requests)

    @property
    def served(self) -> tuple[RequestRecord, ...]:
        """Requests that ended well."""
        return tuple(request for request in self.requests if request.error is None)

    @property
    def is_partial(self) -> bool:
        """Only launches that were stopped in the middle, or cut off, came to it: its figures are compared with nothing."""
        return bool(self.loads) and all(load.partial for load in self.loads)

    @property
    def is_lacking(self) -> bool:
        """Requests were left out, so that totals would be too small."""
        return any(load.impossible_count for load in self.loads)

    @property
    def samples(self) -> tuple[DecodeSample, ...]:
        """Decode lines of all launches."""
        return tuple(sample for load in self.loads for sample in load.samples)


class Arm(Struct, frozen=True, kw_only=True):
    """One variant with everything that its launches gave."""

    variant: Variant
    cells: dict[Key, Cell]
    """Every level of the suite, in its order; one that was never driven has no loads."""
    engine_version: str | None = None
    failures: tuple[Failure, ...] = ()
    launch_count: int = 0
    """Launches begun."""
    asked: bool = True
    """False: the run was to launch other variants only."""
    before_failure: tuple[str, ...] = ()
    """Levels that launches measured whole before they failed, each in words: they give no figure."""
    proposed_tokens: int | None = None
    """K as the server resolved it, else as the suite asks; None without speculation."""
    longest_accept_tokens: int | None = None
    """min(K, steps) + 1."""
    admission_limit: int | None = None
    """`max_running_requests` as resolved; the lowest of the launches."""
    cut_off: tuple[str, ...] = ()
    """Levels that a launch recorded only in part, each in words: they give no figure."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """Of the first launch that said something."""
    drafter_log: DrafterLog = DrafterLog()
    """Of the first launch that came to its load."""

    @property
    def is_asked_to_draft(self) -> bool:
        """By the suite's `speculation`, or by flags in `args`: then its log tells of the drafter."""
        return self.variant.speculation is not None or self.drafter_log.loaded_line is not None

    @property
    def has_failed(self) -> bool:
        """A launch did, by itself: one that was stopped did not."""
        return any(one.kind != STOPPED for one in self.failures)

    @property
    def is_synthetic(self) -> bool:
        """The server was told how much to accept: its speed tells what a step costs, and nothing of a drafter."""
        speculation = self.variant.speculation
        return speculation is not None and speculation.synthetic_length is not None


def suite_of(stored: StoredRun | OpenRun) -> Suite:
    """The resolved suite inside a run. Raises StoreError."""
    try:
        suite = msgspec.convert(stored.run.suite, Suite)
    except msgspec.ValidationError as error:
        raise StoreError(f"{stored.folder}: the suite in its run.json can't be read: {error}") from None
    if all(variant.name != suite.baseline for variant in suite.variants):
        raise StoreError(f"{stored.folder}: the suite in its run.json has no variant '{suite.baseline}', its baseline")
    return suite


def arms_of(suite: Suite, trials: Sequence[StoredTrial], asked: Collection[str] | None = None) -> dict[str, Arm]:
    """One a variant, in the suite's order. Launches of `packing: control` that had the machine alone are left out.

    `asked`: variants that the run was to launch; None: all of them.
    """
    trials = [one for one in trials if not one.record.trial.alone]
    driven = {(level.workload, level.concurrency) for trial in trials for level in trial.record.levels}
    planned = {(one.name, concurrency): one for one in suite.workloads for concurrency in one.concurrency}
    levels = {key: workload for key, workload in planned.items() if workload.saturate is None or key in driven}
    return {
        variant.name: replace(
            arm_of(variant, [one for one in trials if one.record.trial.variant == variant.name], levels),
            asked=asked is None or variant.name in asked,
        )
        for variant in suite.variants
    }


def arm_of(variant: Variant, trials: Sequence[StoredTrial], levels: Mapping[Key, Workload]) -> Arm:
    """`trials` are this variant's own; of a sweep's `levels`, those that any variant came to."""
    resolved = next((one.record.resolved for one in trials if one.record.resolved), {})
    proposed, longest = _draft_depth(variant.speculation, resolved)
    return Arm(
        variant=variant,
        cells={key: _cell(key, trials, proposed, workload) for key, workload in levels.items()},
        engine_version=next((one.record.engine_version for one in trials if one.record.engine_version), None),
        failures=tuple(one.record.failure for one in trials if one.record.failure),
        launch_count=len(trials),
        before_failure=tuple(text for trial in trials for key in levels if (text := _before_failure(key, trial))),
        cut_off=tuple(
            text for trial in trials if not _has_failed(trial) for key in levels if (text := shortfall(key, trial))
        ),
        proposed_tokens=proposed,
        longest_accept_tokens=longest,
        admission_limit=min(filter(None, (admission_limit(one.record.resolved) for one in trials)), default=None),
        resolved=resolved,
        drafter_log=next((_drafter_log(one) for one in trials if one.requests), DrafterLog()),
    )


def pooled(cells: Iterable[Cell]) -> Cell:
    """Several workloads of one variant at one concurrency as one cell; totals add up, nothing is averaged."""
    cells = tuple(cells)
    return Cell(
        workload=ALL_WORKLOADS,
        concurrency=cells[0].concurrency,
        loads=tuple(load for cell in cells for load in cell.loads),
        proposed_tokens=cells[0].proposed_tokens,
    )


def _drafter_log(trial: StoredTrial) -> DrafterLog:
    return drafter_log(trial.record.engine, trial.record.argv, trial.observations)


def _draft_depth(speculation: Speculation | None, resolved: dict[str, Any]) -> tuple[int | None, int | None]:
    """K and the ceiling of AL, by the server's word where it gives one."""
    if speculation is None:
        return None, None
    proposed = (_whole(resolved, "draft_tokens") or speculation.draft_tokens) - 1
    steps = _whole(resolved, "steps") or (proposed if speculation.topk == 1 else speculation.steps_count)
    return proposed, min(proposed, steps) + 1


def admission_limit(resolved: dict[str, Any]) -> int | None:
    """The argument, or what the scheduler made of it on every data-parallel rank; whichever is lower."""
    per_rank = _whole(resolved, "effective_max_running_requests_per_rank")
    ranks = _whole(resolved, "data_parallel") or 1
    limits = (_whole(resolved, "max_running_requests"), per_rank and per_rank * ranks)
    return min((limit for limit in limits if limit), default=None)


def _whole(resolved: dict[str, Any], name: str) -> int | None:
    value = resolved.get(name)
    return value if type(value) is int and value > 0 else None


def _cell(key: Key, trials: Sequence[StoredTrial], proposed_tokens: int | None, workload: Workload) -> Cell:
    loads = [load for trial in trials for load in _loads(key, trial)]
    return Cell(
        workload=key[0],
        concurrency=key[1],
        loads=tuple([load for load in loads if not load.partial] or loads),
        proposed_tokens=proposed_tokens,
        slo=workload.slo,
        rate_rps=workload.arrival.rate_rps if workload.arrival else None,
        beyond=workload.saturate is not None and not any(any(_recorded(key, trial)) for trial in trials),
    )


def _has_failed(trial: StoredTrial) -> bool:
    """By itself, and not because the user stopped it."""
    return trial.record.failure is not None and trial.record.failure.kind != STOPPED


def _before_failure(key: Key, trial: StoredTrial) -> str | None:
    requests, _ = _recorded(key, trial)
    if not requests or not _has_failed(trial) or shortfall(key, trial) is not None:
        return None
    return f"{key[0]} at {key[1]}" if key[1] else f"{key[0]} in an open loop"


def _loads(key: Key, trial: StoredTrial) -> Iterable[Load]:
    """None or one: a launch that failed, never came to this level, or did not record the whole of it, adds nothing."""
    requests, levels = _recorded(key, trial)
    if requests and shortfall(key, trial) is None and not _has_failed(trial):
        window = levels[0].started_s, levels[-1].ended_s
        counters = counters_of(key, trial.observations)
        samples = decode_samples(trial.observations, window) if trial.observations_whole else ()  # a part would mislead
        possible = tuple(one for one in requests if not is_impossible(one))
        yield Load(
            block_index=trial.record.trial.block_index,
            requests=possible,
            partial=trial.record.failure is not None or not trial.record.complete,
            impossible_count=len(requests) - len(possible),
            samples=samples,
            counters=counters,
        )


def shortfall(key: Key, trial: StoredTrial) -> str | None:
    """What is missing of a level that was begun: part of its requests would be judged as if they were all."""
    requests, levels = _recorded(key, trial)
    planned = sum(level.request_count for level in levels)
    if (not requests and not levels) or (levels and len(requests) >= planned):
        return None
    told = f"{len(requests)} of {counted(planned, 'request')}" if levels else counted(len(requests), "request")
    return f"launch {trial.record.trial.launch_index}, {key[0]} at {key[1]}: {told}"


def _recorded(key: Key, trial: StoredTrial) -> tuple[tuple[RequestRecord, ...], list[LevelRecord]]:
    requests = tuple(one for one in trial.requests if not one.warmup and (one.workload, one.concurrency) == key)
    return requests, [one for one in trial.record.levels if (one.workload, one.concurrency) == key]


def counters_of(key: Key, observations: Iterable[Observation]) -> tuple[dict[str, float], dict[str, float]] | None:
    """The first reading and the last of a level; None without both."""
    found: dict[str, dict[str, float]] = {}
    for one in observations:
        value = one.value if one.source == "metrics" and isinstance(one.value, dict) else {}
        if (value.get("workload"), value.get("concurrency")) == key and isinstance(value.get("counters"), dict):
            found[one.name] = value["counters"]
    return (found["begin"], found["end"]) if {"begin", "end"} <= set(found) else None


def decode_samples(observations: Iterable[Observation], window: tuple[float, float]) -> tuple[DecodeSample, ...]:
    """Decode lines read inside a window of the trial's clock. Raises StoreError for one of another shape."""
    start_s, end_s = window
    inside = [one.value for one in observations if one.name == "decode" and start_s <= one.at_s <= end_s]
    try:
        return tuple(msgspec.convert(value, DecodeSample) for value in inside if isinstance(value, dict))
    except msgspec.ValidationError as error:
        raise StoreError(f"observations.jsonl: a decode line can't be read: {error}") from None
