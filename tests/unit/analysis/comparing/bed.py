"""Stored results with launches whose speed is stated, for `compare`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from specbench.plan import Trial
from specbench.records import Failure, LevelRecord, RequestRecord, RunRecord, TrialRecord
from specbench.store import RunWriter
from specbench.suite import Suite, Workload
from tests.unit.analysis.runs import SPECULATION, request, suite, variant

ALIKE = (1.0, 1.01, 0.99, 1.005, 0.995)
"""Five launches of one server."""

ASKED = suite(
    [variant("baseline"), variant("head", speculation=SPECULATION)], [Workload(name="chat", concurrency=(1, 2))], launches=5
)


def requests_of(asked: Suite, pace: float, speculating: bool, accepted: int = 12) -> list[RequestRecord]:
    """Every level, four requests each. `pace`: all times by this factor."""
    found: list[RequestRecord] = []
    for place, (workload, concurrency) in enumerate(
        (one.name, level) for one in asked.workloads for level in one.concurrency
    ):
        for index in range(4):
            chunks = [((0.1 + 0.02 * step) * pace * (1 + 0.01 * index), 1 + step % 2) for step in range(12)]
            found.append(
                request(
                    len(found),
                    workload=workload,
                    concurrency=concurrency,
                    prompt_id=f"{workload}-{index}",
                    due_s=100.0 * place + 10 * index * pace,
                    chunks=chunks,
                    drafts=(accepted + index, 11) if speculating else None,
                )
            )
    return found


def write_result(
    folder: Path,
    paces: Mapping[str, Sequence[float]],
    asked: Suite = ASKED,
    *,
    started_utc: str = "2026-11-28T02:00:00Z",
    accepted: Mapping[str, int] | None = None,
    failing: Mapping[tuple[str, int], str] | None = None,
    records: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Path:
    """`paces`: by variant, one a launch. `failing`: by variant and launch, how: `launch`, `request`, `record`, `level`."""
    folder.mkdir(parents=True)
    names = list(paces)
    trials = tuple(
        Trial(variant=name, launch_index=block, block_index=block, order_index=block * len(names) + place)
        for place, name in enumerate(names)
        for block in range(len(paces[name]))
    )
    writer = RunWriter(folder)
    for trial in trials:
        requests = requests_of(
            asked,
            paces[trial.variant][trial.launch_index],
            asked.variant(trial.variant).speculation is not None,
            (accepted or {}).get(trial.variant, 12),
        )
        fault = (failing or {}).get((trial.variant, trial.launch_index))
        _write_launch(writer, trial, requests, started_utc, fault, dict(records or {}))
    writer.write_run(
        RunRecord(
            suite_name=asked.name,
            suite_path=asked.path,
            suite=msgspec.to_builtins(asked),
            trials=trials,
            started_utc=started_utc,
            specbench_version="0.1.0",
            environment={"host": "box", "cpu_model": "a CPU", **fields.pop("environment", {})},
            datasets={one.name: {"sha256": "aa"} for one in asked.workloads},
            complete=True,
            **fields,
        )
    )
    return folder


def _write_launch(
    writer: RunWriter,
    trial: Trial,
    requests: list[RequestRecord],
    started_utc: str,
    fault: str | None,
    fields: dict[str, Any],
) -> None:
    levels = dict.fromkeys((one.workload, one.concurrency) for one in requests)
    record = TrialRecord(
        trial=trial,
        engine="sglang",
        engine_version=fields.pop("engine_version", "0.5.23"),
        started_utc=started_utc,
        levels=tuple(
            LevelRecord(workload=workload, concurrency=streams, started_s=0.0, ended_s=1e3, request_count=4)
            for workload, streams in levels
        ),
        failure=Failure(kind="died_under_load", cause="CUDA error") if fault == "launch" else None,
        complete=True,
        **fields,
    )
    if fault == "request":
        requests[0] = msgspec.structs.replace(requests[0], error="timed out")
    if fault == "record":
        requests[0] = msgspec.structs.replace(requests[0], done_s=-1.0)
    if fault == "level":
        requests = requests[:-1]
    with writer.open_trial(trial) as launch:
        for one in requests:
            launch.add_request(one)
        launch.write_manifest(record)
