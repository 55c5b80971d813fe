"""`specbench selftest`: measures, prints, stores, and judges a suite's load."""

import os
from pathlib import Path

import msgspec
import pytest

from specbench.cli.main import main
from specbench.cli.selftest import lines
from specbench.execution import selftest
from specbench.execution.environment import environment
from specbench.execution.scale import peak_rps
from specbench.execution.selftest import PacedLoad, SelfTest
from specbench.suite import load_suite

HEAD = "name: s\nmodel: m\nengine: sglang\nvariants: [{name: plain}]\nexpected: {per_user_tps: 100}\nworkloads:\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def suite_file(folder: Path, *workloads: str) -> str:
    path = folder / "s.yaml"
    path.write_text(HEAD + "".join(f"  - {{name: w{index}, {one}}}\n" for index, one in enumerate(workloads)))
    return str(path)


def test_it_measures_and_the_result_goes_into_later_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none was run on this machine" in environment()["reasons"]["selftest"]
    assert main(["selftest", suite_file(tmp_path, "concurrency: [4]"), "--seconds", "2"]) == 0
    printed = capsys.readouterr().out
    assert "free-running" in printed
    assert "s: at most 400 chunks/s (streams" in printed
    assert "open loop: rate × tokens), within what 1 client process takes" in printed
    result = selftest.last()
    assert result is not None
    assert environment()["selftest"] == msgspec.to_builtins(result)
    for one in result.paced:
        assert (one.chunk_count, one.failed_count) == (64 * 35, 0)
        assert 0 <= one.late_p50_s <= one.late_p99_s
        assert one.late_p50_s < 0.005
        assert 0 < one.cpu_per_chunk_s < 0.01
    assert result.saturated_rps > 64 / 0.02


def test_a_load_beyond_the_limit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selftest, "run", lambda seconds_s: made())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert main(["selftest", suite_file(tmp_path, "concurrency: [4, 800]")]) == 1
    said = capsys.readouterr().out
    assert "open loop: rate × tokens), BEYOND what 2 client processes take" in said
    assert "(25,000)" in said
    assert main(["selftest", suite_file(tmp_path, "concurrency: [4, 200]")]) == 0
    assert "within what 2 client processes take" in capsys.readouterr().out


def made(**fields: float) -> SelfTest:
    load = PacedLoad(
        name="lockstep",
        chunk_count=640,
        failed_count=0,
        cpu_per_chunk_s=40e-6,
        late_p50_s=2e-6,
        late_p99_s=1e-4,
        ttft_error_p99_s=2e-4,
    )
    known = {"at_utc": "", "host": "here", "specbench_version": "1", "streams_count": 64, "clock": "kernel"}
    return msgspec.convert(known | {"paced": (load,), "saturated_rps": 5e4, "saturated_core_ratio": 1.0} | fields, SelfTest)


def test_the_table_says_who_was_the_limit() -> None:
    assert list(lines(made()))[2:] == [
        "lockstep            640     40.0 µs   0.002 ms   0.100 ms      0.200 ms       0",
        "limit: 50,000 chunks/s at 100% of a core; measured with 64 streams",
    ]
    assert "or more: the server was the limit" in list(lines(made(saturated_core_ratio=0.4)))[-1]


def test_an_open_loops_streams_follow_from_rate_and_length(tmp_path: Path) -> None:
    path = suite_file(tmp_path, "concurrency: [2]", "arrival: {rate_rps: 5, duration_s: 9}, max_output_tokens: 200")
    assert peak_rps(load_suite(path, {})) == 5 * 200


@pytest.mark.parametrize("seconds", ["1", "61", "nan"])
def test_its_length_is_bounded(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--seconds", seconds]) == 2
    assert "--seconds must be 2 to 60" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{}", '{"host": 3}'])
def test_a_broken_or_foreign_result_is_none(cache: Path, text: str) -> None:
    cache.mkdir()
    (cache / "selftest.json").write_text(text)
    assert selftest.last() is None
    selftest.store(made())
    assert selftest.last() is None
