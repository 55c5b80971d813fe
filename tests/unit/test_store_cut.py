"""A stored run with any file cut at any byte: a sentence, or figures that are the whole run's or none, and a count."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specbench.analysis.judge import judge_run
from specbench.errors import StoreError
from specbench.plan import make_plan
from specbench.records import LevelRecord, RunRecord, TrialRecord
from specbench.store import MANIFEST_FILE, OBSERVATIONS_FILE, REQUESTS_FILE, RUN_FILE, create_run, read_run
from tests.unit.analysis.runs import SPECULATION, decode, steady_requests, suite, variant

LEVELS = (("chat", 1), ("code", 1))
NO_FIGURES = {"request_count", "failed_count", "launch_count", "verdict"}
"""Counts say themselves how much they count, and a verdict may be `unknown`."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two variants, two workloads, requests and decode lines."""
    from specbench.suite import Workload

    asked = suite(
        (variant("plain"), variant("spec", speculation=SPECULATION)), tuple(Workload(name=name) for name, _ in LEVELS)
    )
    plan = make_plan(asked)
    with create_run(tmp_path, "cut", "name: cut\n") as writer:
        run = RunRecord(
            suite_name="cut",
            suite_path="cut.yaml",
            suite=msgspec.to_builtins(asked),
            trials=plan.trials,
            started_utc="2026-01-01T00:00:00Z",
            specbench_version="0",
            complete=True,
        )
        writer.write_run(run)
        for trial in plan.trials:
            with writer.open_trial(trial) as launch:
                levels = []
                for place, (name, streams) in enumerate(LEVELS):
                    for one in steady_requests(name, streams, 0.02, 3, start_s=10.0 * place, speculating=True):
                        launch.add_request(one)
                    launch.add_observation(decode(10.0 * place + 1.0, accept_length=2.0 + place, running_requests=streams))
                    levels.append(
                        LevelRecord(
                            workload=name,
                            concurrency=streams,
                            started_s=10.0 * place,
                            ended_s=10.0 * place + 5.0,
                            request_count=streams,
                        )
                    )
                launch.write_manifest(TrialRecord(trial=trial, engine="sglang", levels=tuple(levels), complete=True))
    return writer.folder


def figures(folder: Path) -> dict[tuple[str, str, int | None], dict[str, Any]]:
    rows = judge_run(read_run(folder)).summaries
    return {(row.variant, row.workload, row.concurrency): msgspec.structs.asdict(row) for row in rows}


def cuts(path: Path) -> Iterator[int]:
    """Every shorter length; the file is whole again afterwards."""
    whole = path.read_bytes()
    for length_bytes in range(len(whole)):
        path.write_bytes(whole[:length_bytes])
        yield length_bytes
    path.write_bytes(whole)


def wrong(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    return [
        name
        for name, value in found.items()
        if name not in NO_FIGURES and isinstance(value, int | float) and value != expected[name]
    ]


def test_the_whole_run_has_figures(folder: Path) -> None:
    rows = figures(folder)
    assert len(rows) == 4
    assert all(row["request_count"] == 1 for row in rows.values())
    assert any(isinstance(value, float) for value in rows["spec", "chat", 1].values())


@pytest.mark.parametrize("name", [REQUESTS_FILE, OBSERVATIONS_FILE])
def test_lines_cut_at_any_byte_are_counted_and_falsify_nothing(folder: Path, name: str) -> None:
    expected = figures(folder)
    judged_counts = set()
    for length_bytes in cuts(folder / "spec.launch0" / name):
        stored = read_run(folder)
        lost = stored.trials[1]
        assert lost.missing_count >= 1, length_bytes
        assert lost.missing_count + len(lost.requests) + len(lost.observations) == 4
        counts = (len(lost.requests), len(lost.observations), lost.dropped_count)
        if counts in judged_counts:  # what is read is the same, so is what is judged
            continue
        judged_counts.add(counts)
        assert any("Result files lack" in note for note in judge_run(stored).notes)
        for key, row in figures(folder).items():
            assert wrong(row, expected[key]) == [], (length_bytes, key)
    assert len(judged_counts) == 4


@pytest.mark.parametrize("name", [RUN_FILE, f"spec.launch0/{MANIFEST_FILE}"])
def test_a_manifest_cut_at_any_byte_is_a_sentence(folder: Path, name: str) -> None:
    expected = figures(folder)
    size_bytes = (folder / name).stat().st_size
    for length_bytes in cuts(folder / name):
        if length_bytes == size_bytes - 1:  # only the last line's end
            assert figures(folder) == expected
            continue
        with pytest.raises(StoreError, match=r"can't be read as a"):
            read_run(folder)


def test_lines_of_two_launches_in_one_file_are_refused(folder: Path) -> None:
    path = folder / "spec.launch0" / REQUESTS_FILE
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(StoreError, match=r"holds 4 lines where its manifest\.json counts 2"):
        read_run(folder)


def test_a_launch_that_goes_on_may_hold_more_than_its_manifest_counts(folder: Path) -> None:
    path = folder / "spec.launch0" / MANIFEST_FILE
    path.write_text(path.read_text().replace('"complete": true', '"complete": false'))
    lines = folder / "spec.launch0" / REQUESTS_FILE
    lines.write_bytes(lines.read_bytes() + lines.read_bytes().splitlines(keepends=True)[0])
    assert read_run(folder).missing_count == 0
