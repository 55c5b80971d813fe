"""A run on GPUs that a stand-in for NVML shows: what is stored, and what is found."""

import json
from pathlib import Path
from typing import Final

import pytest

from specbench.analysis.judge import judge_run
from tests import fake_nvml
from tests.e2e.bed import SUITE, Bed

GIB: Final = 2**30
LONG: Final = SUITE.replace("engine: fake\n", "engine: fake\nhardware: {gpu_count: 1}\n")


class Gpus:
    """What NVML shows, in a file."""

    def __init__(self, bed: Bed) -> None:
        bed.plug(Path(fake_nvml.__file__), "pynvml.py")
        self.path = bed.folder / "gpus.json"
        self.env = {"FAKE_NVML": str(self.path), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        self.show({})

    def show(self, *gpus: dict[str, object]) -> None:
        self.path.write_text(json.dumps(gpus))

    def becomes(self, count: int, **gpu: object) -> str:
        """Arguments of a server that makes it so at its request `count`."""
        return json.dumps(["--step-s", 0.25, "--at-request", count, str(self.path), json.dumps([gpu])])


@pytest.fixture
def gpus(bed: Bed) -> Gpus:
    return Gpus(bed)


def test_manifest_and_samples(bed: Bed, gpus: Gpus) -> None:
    done = bed.run(str(bed.suite("name: plain, args: [--step-s, 0.25]", text=LONG)), env=gpus.env)
    assert done.returncode == 0, done.stderr
    (trial,) = bed.stored().trials
    environment = trial.record.environment
    assert trial.record.slot.gpu_ids == (0,)
    assert environment["gpus"][0]["name"] == "NVIDIA H200"
    assert environment["gpus"][0]["reasons"]["sm_clock_application_mhz"] == "NVML: Not Supported"
    assert (environment["gpu_driver"], environment["cuda_version"]) == ("575.57.08", "12.9")
    assert environment["variables"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert len(environment["datasets"]["chat"]) == 64
    assert environment["packages"]["count"] > 5
    assert environment["model_files"] is None
    assert {name for name, value in environment.items() if value is None} == set(environment["reasons"])
    level = trial.record.levels[0]
    samples = [one for one in trial.observations if one.source == "telemetry"]
    inside = [one for one in samples if level.started_s <= one.at_s <= level.ended_s]
    assert len(inside) >= 2
    assert inside[0].value["gpus"][0]["sm_clock_mhz"] == 1980
    assert inside[0].value["foreign"] == []


def test_a_gpu_lost_held_back_and_shared(bed: Bed, gpus: Gpus) -> None:
    """One variant a trouble. The lost GPU comes last: nothing is launched on one that is lost."""
    mine = [[1, GIB]]  # process 1 is nobody's child here
    variants = (
        f"name: hot, args: {gpus.becomes(1, reasons=0x40, sm_clock_mhz=1400)}",
        f"name: shared, args: {gpus.becomes(1, processes=mine)}",
        f"name: plain, args: {gpus.becomes(1)}",
        f"name: lost, args: {gpus.becomes(3, lost=True)}",
    )
    done = bed.run(str(bed.suite(*variants, text=LONG)), env=gpus.env)
    assert done.returncode == 0, done.stderr
    stored = bed.stored()
    assert all(one.record.complete and not one.record.failure for one in stored.trials)
    assert all(one.error is None for trial in stored.trials for one in trial.requests)
    found = {(one.code, one.variant) for one in judge_run(stored).findings}
    assert {("gpu_lost", "lost"), ("gpu_throttled", "hot"), ("foreign_gpu_process", "shared")} <= found
    assert not {code for code, variant in found if variant == "plain"} & {"gpu_throttled", "foreign_gpu_process"}
    lost = stored.trials[-1].observations
    values = [one.value["gpus"][0] for one in lost if one.source == "telemetry"]
    assert values[-1]["lost"] is True
    assert values[-1]["reasons"] == {"gpu": "NVML: GPU is lost"} or "NVML: GPU is lost" in values[-1]["reasons"].values()
    assert "GPU 0 was lost" in done.stdout


def test_memory_that_is_not_released_names_its_holder(bed: Bed, gpus: Gpus) -> None:
    gpus.show({"used_bytes": 70 * GIB, "processes": [[1, 69 * GIB]]})
    bed.plug(Path(__file__).parent / "fake" / "impatient.py", "sitecustomize.py")
    done = bed.run(str(bed.suite("name: first", "name: second", text=LONG)), env=gpus.env)
    assert done.returncode == 1, done.stderr
    first, _ = bed.stored().trials
    assert first.record.failure is not None
    assert first.record.failure.kind == "gpu_in_use"
    assert first.record.failure.cause.startswith("GPU 0: 70.0 of 140.0 GiB are held by process 1 (")
    assert first.requests == ()


def test_gpus_of_strangers_are_left_alone(bed: Bed, gpus: Gpus) -> None:
    gpus.show({"used_bytes": 70 * GIB, "processes": [[1, 69 * GIB]]}, {})
    two = LONG.replace("gpu_count: 1", "gpu_count: 2")
    done = bed.run(str(bed.suite("name: first", "name: second", text=two)), env=gpus.env)
    assert done.returncode == 0, done.stderr
    assert [one.record.slot.gpu_ids for one in bed.stored().trials] == [(1,), (1,)]


def test_a_lost_gpu_is_left_out(bed: Bed, gpus: Gpus) -> None:
    """NVML says so before the launch; the launch goes to another one."""
    gpus.show({"lost": True}, {})
    two = LONG.replace("gpu_count: 1", "gpu_count: 2")
    done = bed.run(str(bed.suite("name: first", text=two)), env=gpus.env)
    assert done.returncode == 0, done.stderr
    (trial,) = bed.stored().trials
    assert trial.record.slot.gpu_ids == (1,)
    assert "first.launch0 is begun again on another slot, without GPU 0" in done.stderr


def test_after_a_gpu_was_lost_the_next_variant_runs_on_another(bed: Bed, gpus: Gpus) -> None:
    lost = json.dumps(["--step-s", 0.25, "--at-request", 3, str(gpus.path), json.dumps([{"lost": True}, {}])])
    gpus.show({}, {})
    two = LONG.replace("gpu_count: 1", "gpu_count: 2")
    done = bed.run(str(bed.suite(f"name: first, args: {lost}", "name: next", text=two)), env=gpus.env)
    assert done.returncode == 0, done.stderr
    stored = bed.stored()
    assert [one.record.slot.gpu_ids for one in stored.trials] == [(0,), (1,)]
    assert [one.error for one in stored.trials[1].requests] == [None] * len(stored.trials[1].requests)
    assert ("gpu_lost", "first") in {(one.code, one.variant) for one in judge_run(stored).findings}
