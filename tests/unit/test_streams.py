"""Reading in passing: blocks, cut-off lines, faults with their line."""

import os
from pathlib import Path

import msgspec
import pytest

from specbench import streams
from specbench.analysis.comparing import Options
from specbench.analysis.comparing.compare import compare_runs
from specbench.errors import StoreError
from specbench.streams import open_result, stream_lines
from tests.unit.analysis.comparing.bed import ALIKE, write_result
from tests.unit.analysis.runs import request


def write_lines(path: Path, count: int, rest: bytes = b"") -> Path:
    lines = b"".join(msgspec.json.encode(request(index)) + b"\n" for index in range(count))
    path.write_bytes(lines + rest)
    return path


@pytest.mark.parametrize("block_bytes", [1, 100, 777, 1 << 20])
def test_every_line_once_whatever_the_block(tmp_path: Path, block_bytes: int) -> None:
    path = write_lines(tmp_path / "requests.jsonl", 40, rest=b'{"request_index": 40, "prom')
    found = [one.prompt_id for block in stream_lines(path, block_bytes) for one in block]
    assert found == [f"prompt-{index}" for index in range(40)]


def test_a_broken_line_is_named_by_its_number(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "requests.jsonl", 3, rest=b'{"prompt_id": 5}\n')
    with pytest.raises(StoreError, match=r"requests\.jsonl:4: can't be read as a RequestRecord"):
        list(stream_lines(path, 200))


def test_an_empty_line_counts_and_is_no_fault(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "requests.jsonl", 3)
    path.write_bytes(path.read_bytes() + b"\n")
    assert sum(map(len, stream_lines(path, 200))) == 3
    path.write_bytes(path.read_bytes() + b'{"prompt_id": 5}\n')
    with pytest.raises(StoreError, match=r"requests\.jsonl:5: can't be read as a RequestRecord"):
        list(stream_lines(path, 200))


def test_a_missing_file_holds_nothing(tmp_path: Path) -> None:
    assert list(stream_lines(tmp_path / "requests.jsonl")) == []


def test_a_folder_without_a_run_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no result of specbench"):
        open_result(tmp_path)


def test_launches_that_were_never_begun_are_left_out(tmp_path: Path) -> None:
    folder = write_result(tmp_path / "run", {"baseline": ALIKE})
    (folder / "baseline.launch4" / "manifest.json").unlink()
    assert [one.record.trial.launch_index for one in open_result(folder).launches] == [0, 1, 2, 3]


def test_telemetry_is_found_among_other_observations(tmp_path: Path) -> None:
    folder = write_result(tmp_path / "run", {"baseline": ALIKE})
    lines = [
        b'{"at_s":1.0,"source":"log","name":"decode","value":{"text":"telemetry"}}',
        b'{"at_s":2.0,"source":"telemetry","name":"gpu","value":{"a":1}}',
        b'{"at_s":3.0,"source":"telemetry","na',
    ]
    (folder / "baseline.launch0" / "observations.jsonl").write_bytes(b"\n".join(lines))
    found, line_count = open_result(folder).launches[0].telemetry()
    assert ([one.at_s for one in found], line_count) == ([2.0], 2)


def test_processes_give_what_one_gives_and_tell_faults_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = open_result(write_result(tmp_path / "a", {"baseline": ALIKE[:3], "head": ALIKE[:3]}))
    b = open_result(
        write_result(tmp_path / "b", {"baseline": ALIKE[:3], "head": ALIKE[:3]}, started_utc="2026-11-29T02:00:00Z")
    )
    alone = compare_runs(a, b, Options())
    monkeypatch.setattr(streams, "SHARED_BYTES", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert compare_runs(a, b, Options()) == alone
    place = tmp_path / "b" / "head.launch2" / "requests.jsonl"
    place.write_bytes(place.read_bytes() + b'{"prompt_id": 5}\n')
    with pytest.raises(StoreError, match=r"head\.launch2/requests\.jsonl:9: can't be read"):
        compare_runs(a, b, Options())
