"""The launcher `slurm` on a real Slurm of two nodes; the servers are simulated, and so are the GPUs."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from specbench.store import StoredRun
from tests.e2e import cluster as slurm
from tests.e2e.bed import Bed
from tests.e2e.leases import holdings, shared
from tests.e2e.slurm_bed import Runs

pytestmark = [
    pytest.mark.skipif(slurm.lacking() is not None, reason=str(slurm.lacking())),
    pytest.mark.slow,
]


def most_at_once(stored: StoredRun) -> int:
    spans = {one.folder: (one.begin_s, one.end_s) for one in holdings(stored)}.values()
    return max(sum(begin_s <= moment < end_s for begin_s, end_s in spans) for moment, _ in spans)


def test_a_matrix_of_eight_launches(runs: Runs) -> None:
    done = runs.run(runs.suite(*[8] * 8))
    assert done.returncode == 0, done.stderr
    stored = runs.bed.stored()
    assert len(stored.trials) == len(set(runs.jobs())) == 8
    assert all(one.record.complete and one.record.failure is None for one in stored.trials)
    assert all(one.record.slot.gpu_ids == tuple(range(8)) for one in stored.trials)
    assert {one.record.slot.nodes for one in stored.trials} == {("n1",), ("n2",)}
    assert shared(stored) == []
    assert most_at_once(stored) == 2
    assert "is PENDING (" in done.stderr
    assert "SIMULATED [8/8 h.launch0] chat at concurrency 1" in done.stderr


def test_a_server_over_two_nodes(runs: Runs) -> None:
    done = runs.run(runs.suite(16))
    assert done.returncode == 0, done.stderr
    (trial,) = runs.bed.stored().trials
    assert trial.record.slot.nodes == ("n1", "n2")
    words = " ".join(trial.record.argv)
    assert f"--nnodes 2 --node-rank 0 --dist-init-addr {trial.record.slot.init_address}" in words
    first, second = (Path(trial.folder) / name for name in ("server.log", "server.rank1.log"))
    met = f"the others at {trial.record.slot.init_address}"
    assert f"SIMULATED: rank 0 of 2 met {met}" in first.read_text()
    assert f"SIMULATED: rank 1 of 2 met {met}" in second.read_text()
    runs.wait_gone()


def test_the_death_of_a_rank_is_the_death_of_its_launch(runs: Runs) -> None:
    process = runs.start(runs.suite(16, tokens=2000), "--rehearse", "--full", "--launcher", "slurm")
    runs.wait_measured("a.launch0")
    (second,) = [one for one in runs.processes() if "--node-rank 1" in " ".join(one.cmdline())]
    second.kill()
    done = runs.finish(process)
    assert done.returncode == 1, done.stderr
    (trial,) = runs.bed.stored().trials
    assert trial.record.failure is not None
    assert trial.record.failure.kind == "died_under_load"
    assert trial.record.failure.cause.startswith("rank 1 on node n2: ")
    runs.wait_gone()


NVML: Final = """
import os
from tests.fake_nvml import *

def nvmlDeviceGetPowerUsage(handle):
    return {"n1": 1000, "n2": 2000}[os.environ["SLURMD_NODENAME"]]
"""


def test_the_gpus_of_every_node_are_sampled(runs: Runs) -> None:
    """NVML is simulated, the way to it is not."""
    path = Path(runs.suite(16, tokens=100))
    path.write_text(path.read_text().replace("sglang", "fake").replace("server: {", "server: {args: [--step-s, 0.05], "))
    (runs.bed.folder / "path" / "pynvml.py").write_text(NVML)
    shown = runs.bed.folder / "gpus.json"
    shown.write_text(json.dumps([{}] * 8))
    env = runs.cluster.env | {"FAKE_NVML": str(shown)}
    done = runs.finish(runs.bed.start(str(path), "--launcher", "slurm", "--no-check", env=env))
    assert done.returncode == 0, done.stderr
    (trial,) = runs.bed.stored().trials
    assert (trial.record.failure, trial.record.slot.nodes) == (None, ("n1", "n2"))
    samples = [one for one in trial.observations if one.source == "telemetry"]
    assert {one.name for one in samples} == {"gpus"}
    for node, power_w in ((None, 1.0), ("n2", 2.0)):
        mine = [one for one in samples if one.value.get("node") == node]
        assert len(mine) >= 2
        assert all([gpu["index"] for gpu in one.value["gpus"]] == list(range(8)) for one in mine)
        assert {gpu["power_w"] for one in mine for gpu in one.value["gpus"]} == {power_w}
    runs.wait_gone()


SAME: Final = ("trial", "engine", "engine_version", "simulated", "env", "failure", "complete", "request_count")


def test_a_suite_s_records_are_the_same_whichever_launcher(bed: Bed, runs: Runs, tmp_path: Path) -> None:
    path = runs.suite(8, 8, allocation="block")
    assert runs.run(path).returncode == 0
    clustered = runs.bed.stored()
    other = Bed(tmp_path / "local")
    here = runs.finish(other.start(path, "--rehearse", "--full", env={"SPECBENCH_GPUS": "16"}))
    assert here.returncode == 0, here.stderr
    local = other.stored()
    assert local.run.trials == clustered.run.trials
    assert without_launcher(local.run.suite) == without_launcher(clustered.run.suite)
    assert local.run.datasets == clustered.run.datasets
    assert local.run.rehearsal == "the whole load, 3 servers side by side"
    assert clustered.run.rehearsal == "the whole load, servers in jobs of Slurm"
    for one, two in zip(local.trials, clustered.trials, strict=True):
        for name in SAME:
            mine, theirs = getattr(one.record, name), getattr(two.record, name)
            assert name == "env" or mine == theirs, name
        assert set(one.record.env) == set(two.record.env)
        assert flags(one.record.argv) == flags(two.record.argv)
        assert [level.workload for level in one.record.levels] == [level.workload for level in two.record.levels]
        assert outline(one.requests) == outline(two.requests)


def without_launcher(suite: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in suite.items() if name != "launcher"}


def flags(argv: tuple[str, ...]) -> list[str]:
    """Without the ports, which are leased."""
    return [word for word in argv if not word.isdigit()]


def outline(requests: Any) -> list[tuple[Any, ...]]:
    return [(one.prompt_id, one.workload, one.concurrency, one.output_tokens, one.error) for one in requests]


def test_what_the_cluster_refuses_is_told(runs: Runs) -> None:
    path = runs.suite(8)
    Path(path).write_text(Path(path).read_text().replace("partition: gpu", "partition: nowhere"))
    done = runs.run(path)
    assert done.returncode == 2
    assert "sbatch refused" in done.stderr
    assert "nowhere" in done.stderr or "partition" in done.stderr


def test_what_a_node_lacks_is_the_failure_of_its_launches(runs: Runs) -> None:
    path = runs.suite(8)
    Path(path).write_text(Path(path).read_text().replace("server: {", "server: {python: /no/such/python, "))
    done = runs.finish(runs.start(path, "--launcher", "slurm", "--no-check"))
    assert done.returncode == 1, done.stderr
    (trial,) = runs.bed.stored().trials
    assert trial.record.failure is not None
    assert trial.record.failure.kind == "lacking"
    assert trial.record.failure.cause.startswith("on node n1: the interpreter /no/such/python ")
