"""A log read by several processes says what one process reads in it."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specbench.analysis.log_report import study, study_read
from specbench.cli import log_pieces
from specbench.cli.log_pieces import _line_start, engine_at_start, process_count, read_pieces
from specbench.cli.main import main
from specbench.dialects.blocks import Block
from tests.unit.log_bed import made_log

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked on Linux alone")

TRACEBACK = [
    "[2026-11-01 10:59:59 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x7168 and 21504x7168)",
]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pieces, "PIECE_BYTES", 10_000)
    monkeypatch.setattr(log_pieces, "LEAST_BYTES", 20_000)
    monkeypatch.setattr(log_pieces, "LONGEST_LINE_BYTES", 70_000)
    monkeypatch.setattr(log_pieces, "SCAN_BYTES", 100)


def told(found: Any) -> Any:
    """As plain values, sums of floats apart."""
    plain = msgspec.to_builtins(found)
    pooled = plain["pooled_accept_length"]
    pooled["error_length"] = pytest.approx(pooled["error_length"])
    for bucket in plain["buckets"]:
        for name in ("accept_length", "gen_throughput_tps"):
            bucket[name] = pytest.approx(bucket[name])
    return plain


def by_pieces(path: Path, count: int) -> Any:
    with path.open("rb") as file, read_pieces(file.fileno(), path.stat().st_size, count) as pieces:
        return study_read(pieces, "sglang", None)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ending", ["", "\n"])
def test_pieces_say_what_the_whole_says(seed: int, ending: str, tmp_path: Path) -> None:
    lines = made_log(seed, 1500)
    lines[700:700] = ["x" * 25_000, ""]
    lines[900:900] = TRACEBACK
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines) + ending)
    assert msgspec.to_builtins(by_pieces(path, 3)) == told(study(lines, "sglang"))


@pytest.mark.usefixtures("small_pieces")
def test_a_line_without_an_end_is_cut_and_costs_no_search_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("x" * 300_000)
    with path.open("rb") as file:
        assert [_line_start(file.fileno(), offset, 300_000) for offset in (0, 10_000, 230_000, 300_000, 310_000)] == [
            0,
            10_000,
            300_000,
            300_000,
            300_000,
        ]
        with read_pieces(file.fileno(), 300_000, 2) as pieces:
            blocks = list(pieces)
        assert b"".join(block.line(index) for block in blocks for index in range(block.line_count)) == b"x" * 300_000


@dataclass
class Killer:
    """Kills each process that it is told of, once it has been started."""

    start: Any

    def __call__(self, process: Any) -> None:
        self.start(process)
        os.kill(process.pid, signal.SIGKILL)


@pytest.mark.usefixtures("small_pieces")
def test_pieces_of_processes_that_died_are_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = made_log(2, 1500)
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines))
    kind = multiprocessing.get_context("fork").Process
    killer = Killer(kind.start)
    monkeypatch.setattr(kind, "start", lambda process: killer(process))
    assert msgspec.to_builtins(by_pieces(path, 2)) == told(study(lines, "sglang"))


@pytest.mark.usefixtures("small_pieces")
def test_the_verb_takes_pieces_of_a_large_file_of_sglang_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "server.log"
    path.write_text("\n".join(made_log(4, 1500)))
    assert process_count(path.stat().st_size) == min(3, len(os.sched_getaffinity(0)))
    with path.open("rb") as file:
        assert engine_at_start(file.fileno()) == "sglang"
    assert main(["log", str(path)]) == 0
    assert "SGLang: 1500 lines" in capsys.readouterr().out
    path.write_text("hello\n" * 10_000)
    assert main(["log", str(path)]) == 2
    assert process_count(1000) == 0


@pytest.mark.usefixtures("small_pieces")
def test_a_log_that_is_cut_while_it_is_read_gives_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "[2026-11-01 10:00:00 TP0] Decode batch. #running-req: 4, gen throughput (token/s): 9.00, #queue-req: 0\n"
    path = tmp_path / "server.log"
    path.write_text(line * 1000)

    def cut(pieces: Iterator[Block]) -> Iterator[Block]:
        blocks = list(pieces)  # the processes are through
        os.truncate(path, 0)
        return iter(blocks)

    with path.open("rb") as file, read_pieces(file.fileno(), path.stat().st_size, 2) as pieces:
        found = study_read(cut(pieces), "sglang", None)
    assert found.record_count == 1000
    assert "cut while it was read" in capsys.readouterr().err
