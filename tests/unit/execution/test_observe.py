"""A log is read while it grows, cut anywhere."""

import asyncio
from pathlib import Path

from specbench import engines
from specbench.execution.observe import LONGEST_LINE_BYTES, LogTail, last_lines, log_tail
from specbench.records import Observation

DECODE = (
    "[2026-11-01 10:00:01 TP0] Decode batch, #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, "
    "accept rate: 0.58, cuda graph: True, gen throughput (token/s): 744.20, #queue-req: 0"
)
LOG = (
    "[2026-11-01 09:56:00 TP0] Load weight begin. avail mem=139.20 GB\n"
    "Loading é: 10%|#   | 1/10\rLoading é: 100%|####| 10/10\n"
    "[2026-11-01 09:59:00] The server is fired up and ready to roll!\r\n"
    f"{DECODE}\n"
    "[2026-11-01 10:00:02 TP0] Load weight begin. avail mem=139.20 GB"
)


def tail_of(path: Path, seen: list[Observation], offset_bytes: int = 0) -> LogTail:
    return LogTail(path, engines.get("external"), seen.append, lambda: 1.5, offset_bytes)


def read_in_two(path: Path, raw: bytes, cut: int) -> tuple[LogTail, list[Observation]]:
    seen: list[Observation] = []
    tail = tail_of(path, seen)
    path.write_bytes(raw[:cut])
    tail.drain()
    path.write_bytes(raw)
    tail.finish()
    return tail, seen


def test_a_log_cut_at_any_byte_reads_the_same(tmp_path: Path) -> None:
    raw = LOG.encode()
    for cut in range(len(raw)):
        tail, seen = read_in_two(tmp_path / "log", raw, cut)
        assert tail.ready.is_set(), cut
        assert [one.name for one in seen] == ["phase", "ready", "decode", "phase"], cut
        assert [phase.name for phase in tail.phases] == ["weights"]


def test_a_decode_line_becomes_its_sample(tmp_path: Path) -> None:
    _, seen = read_in_two(tmp_path / "log", f"{DECODE}\n".encode(), 5)
    (one,) = seen
    assert (one.source, one.at_s, one.value["accept_length"], one.value["cuda_graph"]) == ("log", 1.5, 2.75, True)


def test_a_line_that_the_grammar_does_not_know_is_counted(tmp_path: Path) -> None:
    strange = DECODE.replace("Decode batch, #running-req: 8, ", "Odd batch, ")
    tail, seen = read_in_two(tmp_path / "log", f"{strange}\n".encode() * 7, 0)
    assert tail.kind_counts["unrecognised"] == 7
    assert [(one.name, one.value["count"], len(one.value["examples"])) for one in seen] == [("unrecognised", 7, 5)]


def test_an_offset_leaves_out_what_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{DECODE}\n")
    seen: list[Observation] = []
    tail = tail_of(path, seen, path.stat().st_size)
    with path.open("a") as file:
        file.write(f"{DECODE}\n")
    tail.finish()
    assert len(seen) == 1


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    seen: list[Observation] = []

    async def appears() -> None:
        tail = tail_of(tmp_path / "log", seen)
        tail.begin()
        await asyncio.sleep(0.1)
        (tmp_path / "log").write_text(f"{DECODE}\n")
        await asyncio.sleep(0.3)
        assert len(seen) == 1
        await tail.end(restoring=False)

    asyncio.run(appears())
    assert [one.name for one in seen] == ["decode"]


def test_a_line_without_an_end_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (3 * LONGEST_LINE_BYTES) + f"\n{DECODE}\n".encode())
    seen: list[Observation] = []
    tail_of(path, seen).finish()
    assert [one.name for one in seen] == ["decode"]


def test_the_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert last_lines(path) == []
    path.write_bytes(b"".join(b"line %d\n" % count for count in range(50)) + b"\xff")
    assert log_tail(path) == (*(f"line {count}" for count in range(31, 50)), "\ufffd")


def test_what_a_log_says_of_resolved_arguments_is_gathered(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "(APIServer pid=1) INFO 11-29 14:11:12 [api_utils.py:286] non-default args: {'max_num_seqs': 4}\n"
        "(EngineCore pid=2) INFO 11-29 14:11:38 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='/m', speculative_config=None, dtype=torch.bfloat16, max_seq_len=512\n"
    )
    tail = LogTail(path, engines.get("vllm"), lambda _: None, lambda: 1.0)
    tail.finish()
    assert tail.resolved == {
        "max_running_requests": 4,
        "model_path": "/m",
        "dtype": "bfloat16",
        "context_length_tokens": 512,
        "version": "0.32.0",
    }
