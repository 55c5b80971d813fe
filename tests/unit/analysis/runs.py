"""Hand-made runs: figures that can be computed in one's head."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from specbench.plan import Trial
from specbench.records import Failure, LevelRecord, Observation, RequestRecord, RunRecord, TrialRecord
from specbench.store import StoredRun, StoredTrial
from specbench.suite import Drafter, Model, Server, Speculation, Suite, Variant, Workload


def request(
    index: int = 0,
    *,
    workload: str = "chat",
    concurrency: int = 1,
    due_s: float = 0.0,
    chunks: Sequence[tuple[float, int]] = ((0.1, 1), (0.2, 2), (0.3, 2)),
    drafts: tuple[int, int] | None = None,
    **fields: Any,
) -> RequestRecord:
    """`chunks`: seconds after due, tokens. `drafts`: accepted draft tokens, verify steps."""
    values: dict[str, Any] = {
        "request_index": index,
        "prompt_id": f"prompt-{index}",
        "category": workload,
        "workload": workload,
        "concurrency": concurrency,
        "due_s": due_s,
        "sent_s": due_s,
        "done_s": due_s + chunks[-1][0] if chunks else due_s,
        "chunk_s": tuple(due_s + at for at, _ in chunks),
        "chunk_tokens": tuple(count for _, count in chunks),
        "output_tokens": sum(count for _, count in chunks),
        "token_source": "meta_info",
        "status_code": 200,
    }
    if drafts is not None:
        values |= {"correct_tokens": drafts[0], "verify_count": drafts[1]}
    return RequestRecord(**{**values, **fields})


def steady_requests(
    workload: str, concurrency: int, step_s: float, tokens_per_step: int, start_s: float = 0.0, speculating: bool = False
) -> list[RequestRecord]:
    """`concurrency` streams with one request each of 1 + 20 steps; every chunk but the first carries the same count."""
    chunks = [(0.1, 1), *((0.1 + step_s * step, tokens_per_step) for step in range(1, 21))]
    drafts = (20 * (tokens_per_step - 1), 20) if speculating else None
    return [
        request(stream, workload=workload, concurrency=concurrency, due_s=start_s, chunks=chunks, drafts=drafts)
        for stream in range(concurrency)
    ]


def variant(name: str, **fields: Any) -> Variant:
    return Variant(name=name, engine=fields.pop("engine", "sglang"), server=Server(), **fields)


def suite(variants: Sequence[Variant], workloads: Sequence[Workload] = (), **fields: Any) -> Suite:
    """The first variant is the baseline."""
    return Suite(
        name=fields.pop("name", "made"),
        path="suites/made.yaml",
        model=Model(path="org/model"),
        drafters=fields.pop("drafters", {"head": Drafter(path="org/head", method="eagle3")}),
        variants=tuple(variants),
        baseline=variants[0].name,
        workloads=tuple(workloads) or (Workload(name="chat"),),
        **fields,
    )


SPECULATION = Speculation(method="eagle3", drafter="head", draft_tokens=4)


def decode(at_s: float, **sample: Any) -> Observation:
    return Observation(at_s=at_s, source="log", name="decode", value=sample)


def trial(
    name: str, requests: Sequence[RequestRecord] = (), observations: Sequence[Observation] = (), **fields: Any
) -> StoredTrial:
    """One launch with the levels that its requests show."""
    levels: dict[tuple[str, int], list[RequestRecord]] = {}
    for one in (one for one in requests if not one.warmup):
        levels.setdefault((one.workload, one.concurrency), []).append(one)
    launch_index = fields.pop("launch_index", 0)
    record = TrialRecord(
        trial=Trial(variant=name, launch_index=launch_index, block_index=launch_index, order_index=0),
        engine=fields.pop("engine", "sglang"),
        engine_version=fields.pop("engine_version", "0.5.23"),
        levels=tuple(
            LevelRecord(
                workload=workload,
                concurrency=concurrency,
                started_s=min(one.due_s for one in level),
                ended_s=max(one.done_s for one in level),
                request_count=len(level),
            )
            for (workload, concurrency), level in levels.items()
        ),
        complete=True,
        **fields,
    )
    return StoredTrial(folder=name, record=record, requests=tuple(requests), observations=tuple(observations))


def failed(name: str, cause: str) -> StoredTrial:
    failure = Failure(kind="died_while_loading", cause=cause, log_tail=("Traceback", "OutOfMemoryError"), exit_code=1)
    return trial(name, failure=failure)


def run(asked: Suite, trials: Sequence[StoredTrial], **fields: Any) -> StoredRun:
    record = RunRecord(
        suite_name=asked.name,
        suite_path=asked.path,
        suite=msgspec.to_builtins(asked),
        trials=fields.pop("planned", tuple(one.record.trial for one in trials)),
        started_utc="2026-11-29T15:36:47Z",
        specbench_version="0.1.0",
        complete=fields.pop("complete", True),
        **fields,
    )
    return StoredRun(folder="results/made-20261129-153647", run=record, trials=tuple(trials))


def whole_run(speeds: Mapping[str, Mapping[tuple[str, int], tuple[float, int]]], asked: Suite, **fields: Any) -> StoredRun:
    """`speeds`: by variant and (workload, concurrency), the seconds a step takes and the tokens it gives."""
    trials = []
    for name, levels in speeds.items():
        speculating = asked.variant(name).speculation is not None
        requests: list[RequestRecord] = []
        for place, ((workload, concurrency), (step_s, tokens)) in enumerate(levels.items()):
            requests += steady_requests(workload, concurrency, step_s, tokens, 100.0 * place, speculating)
        trials.append(trial(name, requests))
    return run(asked, trials, **fields)
