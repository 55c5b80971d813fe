"""Servers side by side, each on GPUs of its own. The GPUs are simulated, and so are the servers."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import pytest

from specbench.analysis.judge import judge_run
from specbench.store import read_run
from tests.e2e.bed import Bed
from tests.e2e.leases import leased_ratio, shared

LIMIT_S: Final = 240.0
HEAD: Final = """\
name: packed
model: nowhere/model
engine: sglang
packing: on
hardware: {{gpu_count: {gpus}}}
warmup: {{request_count: 1, max_output_tokens: 4}}
workloads:
  - {{name: chat, request_count: 2, max_output_tokens: {tokens}}}
variants:
"""
TWELVE: Final = (8, 8, 4, 4, 2, 2, 2, 1, 1, 1, 1, 1)


def suite(bed: Bed, *widths: int, tokens: int = 360, gpus: int = 8, more: str = "") -> str:
    """Variants `a`, `b`, … that span so many GPUs."""
    words = [f"name: {chr(97 + place)}, tensor_parallel: {width}" for place, width in enumerate(widths)]
    return str(bed.suite(*words, text=more + HEAD.format(gpus=gpus, tokens=tokens)))


def finish(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    out, err = process.communicate(timeout=LIMIT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def rehearsed(bed: Bed, path: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return finish(bed.start(path, "--rehearse", "--full", env=env))


@pytest.mark.slow
def test_twelve_variants_on_eight_gpus(bed: Bed) -> None:
    done = rehearsed(bed, suite(bed, *TWELVE))
    assert done.returncode == 0, done.stderr
    stored = bed.stored()
    assert [len(one.record.slot.gpu_ids) for one in stored.trials] == list(TWELVE)
    assert all(one.record.complete for one in stored.trials)
    assert shared(stored) == []
    assert leased_ratio(stored, 8) >= 0.85
    assert all(one.record.slot.port != one.record.slot.nccl_port for one in stored.trials)  # later ones may take them again
    beside = {one.record.trial.variant: one.record.lease.neighbours for one in stored.trials if one.record.lease}
    assert beside["a"] == ()
    assert "d.launch0" in beside["c"]
    for one in stored.trials:
        assert one.record.env["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, one.record.slot.gpu_ids))


class Gpus:
    """What SPECBENCH_GPUS simulates."""

    def __init__(self, folder: Path, count: int) -> None:
        self.path = folder / "gpus.json"
        self._listed: list[dict[str, Any]] = [{"index": index, "numa_node": index // 4} for index in range(count)]
        self._write()

    def break_one(self, index: int, why: str) -> None:
        self._listed[index]["broken"] = why
        self._write()

    def _write(self) -> None:
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self._listed))
        beside.replace(self.path)


def test_a_poisoned_slot_is_left_out(bed: Bed) -> None:
    gpus = Gpus(bed.folder, 4)
    gpus.break_one(1, "Xid 79, as the test has it")
    done = rehearsed(bed, suite(bed, 4, 2, 1, tokens=20, gpus=4), SPECBENCH_GPUS=str(gpus.path))
    assert done.returncode == 1, done.stderr
    stored = bed.stored()
    wide, *others = [one.record for one in stored.trials]
    assert wide.failure is not None
    assert wide.failure.cause == "GPU 1: Xid 79, as the test has it"
    assert all(one.failure is None and 1 not in one.slot.gpu_ids for one in others)
    assert shared(stored) == []


def test_a_gpu_that_dies_takes_its_launch_and_not_the_suite(bed: Bed) -> None:
    gpus = Gpus(bed.folder, 2)
    process = bed.start(suite(bed, 1, 1, tokens=360, gpus=2), "--rehearse", "--full", env={"SPECBENCH_GPUS": str(gpus.path)})
    pid, index = victim(bed)
    gpus.break_one(index, "it fell off the bus")
    os.kill(pid, signal.SIGKILL)
    done = finish(process)
    assert done.returncode == 0, done.stderr
    assert f"a.launch0 is begun again on another slot, without GPU {index} (it fell off the bus)" in done.stderr
    stored = bed.stored()
    assert [one.record.slot.gpu_ids for one in stored.trials] == [(1 - index,), (1 - index,)]
    assert all(one.record.complete and one.record.failure is None for one in stored.trials)
    assert shared(stored) == []
    (aside,) = (Path(stored.folder) / "aside").iterdir()
    assert json.loads((aside / "manifest.json").read_text())["failure"]["kind"].startswith("died")


def victim(bed: Bed) -> tuple[int, int]:
    """Process and GPU of variant `a`, once it is measured."""
    give_up_s = time.monotonic() + LIMIT_S
    while time.monotonic() < give_up_s:
        for path in (bed.folder / "results").glob("*/a.launch0/manifest.json"):
            record = json.loads(path.read_text())
            if record.get("ready_s"):
                return record["process"]["pid"], record["slot"]["gpu_ids"][0]
        time.sleep(0.05)
    pytest.fail("it was never ready")


def test_no_slot_is_left(bed: Bed) -> None:
    gpus = Gpus(bed.folder, 2)
    gpus.break_one(0, "dead")
    done = rehearsed(bed, suite(bed, 2, 2, 1, tokens=20, gpus=2), SPECBENCH_GPUS=str(gpus.path))
    assert done.returncode == 1, done.stderr
    first, second, third = [one.record for one in bed.stored().trials]
    assert first.failure is not None
    assert first.failure.kind == "gpu_lost"
    assert second.failure is not None
    assert second.failure.cause == "it needs 2 GPUs, and 1 of this machine's are left (GPU 0: dead)"
    assert third.failure is None


@pytest.mark.slow
def test_interference_is_measured(bed: Bed) -> None:
    path = suite(bed, 1, 1, tokens=60, gpus=2)
    Path(path).write_text(Path(path).read_text().replace("packing: on", "packing: control"))
    done = rehearsed(bed, path)
    assert done.returncode == 0, done.stderr
    stored = bed.stored()
    alone = [one.record for one in stored.trials if one.record.trial.alone]
    assert [one.lease.neighbours for one in alone if one.lease] == [(), ()]
    judgement = judge_run(stored)
    found = [one for one in judgement.findings if one.code == "packing_interference"]
    assert [one.variant for one in found] == ["a", "b"]
    assert all(one.message.startswith("Packed (with up to 1 beside it) it gave ") for one in found)
    assert all(one.launch_count == 1 for one in judgement.summaries)
    assert "packing_interference" in done.stdout


def test_what_can_not_be_simulated_is_told(bed: Bed) -> None:
    done = bed.run(suite(bed, 1), "--rehearse", env={"SPECBENCH_GPUS": "eight"})
    assert done.returncode == 2
    assert "SPECBENCH_GPUS=eight: is neither a number of GPUs (at most 1024) nor a JSON file that lists them" in done.stderr
    assert bed.made_nothing()


def test_more_gpus_than_there_are(bed: Bed) -> None:
    done = bed.run(suite(bed, 4, gpus=4), "--rehearse", env={"SPECBENCH_GPUS": "2"})
    assert done.returncode == 2
    assert "the suite needs 4 GPUs and this machine has 2 (simulated, simulated)" in done.stderr


def test_real_servers_are_driven_by_processes_of_their_own(bed: Bed) -> None:
    """The fake engine's: nothing is simulated here but the GPUs."""
    text = HEAD.format(gpus=2, tokens=8).replace("engine: sglang", "engine: fake")
    path = bed.suite("name: a", "name: b", text=text)
    done = finish(bed.start(str(path), env={"SPECBENCH_GPUS": "2"}))
    assert done.returncode == 0, done.stderr
    stored = read_run(bed.stored().folder)
    assert shared(stored) == []
    assert {one.record.slot.gpu_ids for one in stored.trials} == {(0,), (1,)}
    assert all(len(one.requests) == 3 for one in stored.trials)
