"""The command line on a real Slurm: a suite, a run, what it left. The servers are simulated."""

import json
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil

from tests.e2e.bed import Bed
from tests.e2e.cluster import Cluster

LIMIT_S: Final = 240.0
MARK: Final = "SLURM_TEST_MARK"
HEAD: Final = """\
name: clustered
model: nowhere/model
engine: sglang
hardware: {{gpu_count: 16}}
slurm: {{partition: gpu, allocation: {allocation}, time_limit: "30:00", args: [--comment=none]}}
server: {{stop_grace_s: 1, env: {{{mark}: "{value}"}}}}
warmup: {{request_count: 1, max_output_tokens: 4}}
workloads:
  - {{name: chat, request_count: 3, max_output_tokens: {tokens}}}
variants:
"""


class Runs:
    """The command line, with the cluster's configuration, and what it left."""

    def __init__(self, bed: Bed, cluster: Cluster) -> None:
        self.bed, self.cluster = bed, cluster
        self.value = uuid.uuid4().hex

    def suite(self, *widths: int, tokens: int = 20, allocation: str = "launch") -> str:
        words = [f"name: {chr(97 + place)}, tensor_parallel: {width}" for place, width in enumerate(widths)]
        text = HEAD.format(allocation=allocation, mark=MARK, value=self.value, tokens=tokens)
        return str(self.bed.suite(*words, text=text))

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return self.bed.start(*words, env=self.cluster.env)

    def resume(self) -> "subprocess.CompletedProcess[str]":
        return self.finish(self.bed.start_plain("--resume", str(self.folder()), env=self.cluster.env))

    def finish(self, process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
        out, err = process.communicate(timeout=LIMIT_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.finish(self.start(*words, "--rehearse", "--full", "--launcher", "slurm"))

    def folder(self) -> Path:
        (folder,) = (self.bed.folder / "results").iterdir()
        return folder

    def manifest(self, name: str) -> dict[str, Any]:
        """Of a launch; empty before there is one."""
        found = list((self.bed.folder / "results").glob(f"*/{name}/manifest.json"))
        record: dict[str, Any] = json.loads(found[0].read_text()) if found else {}
        return record

    def wait_until(self, is_so: Callable[[], object], what: str) -> None:
        give_up_s = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < give_up_s, f"{what}; {self.cluster.ask('squeue')}"
            time.sleep(0.1)

    def wait_measured(self, name: str) -> None:
        self.wait_until(lambda: self.manifest(name).get("ready_s"), f"{name} was never ready")

    def processes(self) -> list[psutil.Process]:
        """Servers of this test, by the mark in their environment."""
        return [one for one in psutil.process_iter() if self._is_ours(one)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == self.value and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def wait_gone(self) -> None:
        self.wait_until(lambda: not self.processes(), "servers are left")
        self.wait_until(lambda: not self.cluster.ask("squeue", "--noheader").strip(), "jobs are left")

    def jobs(self) -> list[str]:
        return [json.loads(path.read_text())["job_id"] for path in sorted((self.folder() / "jobs").glob("*.json"))]
