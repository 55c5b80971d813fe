"""GPUs as NVML shows them, by a module that stands for it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specbench.errors import LaunchError, SpecbenchError
from specbench.execution.environment import environment
from specbench.execution.gpu_use import gpu_memory_released, gpu_uses, is_below, wait_released
from specbench.execution.gpus import VARIABLE, gpu_obstacles, gpus, machine_gpus, simulated
from specbench.execution.nvml import FACTS, SAMPLE, gpu_facts, nvml
from specbench.execution.telemetry import Telemetry, sample
from specbench.execution.unreadable import UnreadableError
from specbench.suite import Hardware, Model, Server, Suite, Variant, Workload
from tests import fake_nvml

GIB = 2**30
Show = Callable[..., None]


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    """Sets what NVML shows: a dict a GPU."""

    def shown(*gpus: dict[str, Any]) -> None:
        (tmp_path / "gpus.json").write_text(json.dumps(gpus))

    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml)
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "gpus.json"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return shown


def suite(**hardware: Any) -> Suite:
    return Suite(
        name="s",
        path="s.yaml",
        model=Model(path="m"),
        variants=(Variant(name="v", engine="fake", server=Server(tensor_parallel=2)),),
        baseline="v",
        workloads=(Workload(name="w"),),
        hardware=Hardware(**hardware),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"index": 0', "Expecting ',' delimiter: line 1 column 13 (char 12)"),
        ('{"index": 0}', 'it must be a list of objects such as [{"index": 0}, {"index": 1}]'),
        ("[0, 1]", 'it must be a list of objects such as [{"index": 0}, {"index": 1}]'),
        ('[{"index": 3}, {"index": 3}]', "GPU 3 is listed 2 times"),
        ('[{"index": -1}]', "GPU -1: indices count from 0 on"),
        ('[{"index": "0"}]', "Expected `int`, got `str` - at `$[0].index`"),
        ('[{"index": 0, "numa": 1}]', "Object contains unknown field `numa` - at `$[0]`"),
    ],
)
def test_a_file_of_gpus_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str) -> None:
    path = tmp_path / "gpus.json"
    path.write_text(text)
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(SpecbenchError) as caught:
        simulated()
    assert str(caught.value) == (
        f"SPECBENCH_GPUS={path}: is neither a number of GPUs (at most 1024) nor a JSON file that lists them: {why}"
    )


def test_the_system_knows_a_gpu_s_side_of_the_machine(show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specbench.execution.nvml.PCI_DEVICES", tmp_path)
    for index, node in enumerate(("1", "0", "-1")):
        (tmp_path / f"0000:{index:02x}:00.0").mkdir()
        (tmp_path / f"0000:{index:02x}:00.0" / "numa_node").write_text(f"{node}\n")
    show({}, {}, {}, {})
    assert [one.numa_node for one in gpus()] == [1, 0, None, None]


def test_facts_and_their_reasons(show: Show) -> None:
    show({}, {"lacks": ["vbios"]})
    first, second = gpu_facts([0, 1])
    assert (first["index"], first["name"], first["memory_bytes"], first["vbios"]) == (
        0,
        "NVIDIA H200",
        140 * GIB,
        "96.00.A5.00.01",
    )
    assert (first["power_w"], first["power_limit_w"], first["temperature_c"], first["busy_ratio"]) == (
        512.345,
        700.0,
        61,
        0.87,
    )
    assert (first["sm_clock_mhz"], first["memory_clock_mhz"], first["compute_mode"], first["mig"]) == (
        1980,
        3201,
        "default",
        False,
    )
    assert first["sm_clock_application_mhz"] is None
    assert first["reasons"]["sm_clock_application_mhz"] == "NVML: Not Supported"
    assert "can't tell" in first["reasons"]["numa_node"]
    assert (second["vbios"], second["reasons"]["vbios"], second["lost"]) == (None, "NVML: Not Supported", False)
    for one in (first, second):
        assert {name for name in {**FACTS, **SAMPLE} if one[name] is None} == set(one["reasons"])


def test_throttle_reasons_have_names(show: Show) -> None:
    show({"reasons": 0x4 | 0x40})
    assert gpu_facts([0])[0]["throttle_reasons"] == ["sw_power_cap", "hw_thermal_slowdown"]


def test_a_lost_gpu_is_told_not_raised(show: Show) -> None:
    show({"lost": True}, {})
    lost, other = gpu_facts([0, 1])
    assert (lost["lost"], lost["sm_clock_mhz"], lost["reasons"]["name"]) == (True, None, "NVML: GPU is lost")
    assert (other["lost"], other["sm_clock_mhz"]) == (False, 1980)


def test_the_environment_asks_nvml_first(show: Show) -> None:
    show({})
    found = environment()
    assert (found["gpu_driver"], found["cuda_version"]) == ("575.57.08", "12.9")
    assert found["gpus"] == [{"index": 0, "name": "NVIDIA H200", "memory_bytes": 140 * GIB}]


def test_without_a_driver_there_is_a_reason(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NVML", "")
    with pytest.raises(UnreadableError, match="NVML Shared Library Not Found"), nvml():
        pytest.fail("there is none")
    assert gpus() == ()
    assert gpu_memory_released([0]) is None


def test_without_the_package_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(UnreadableError, match=r"specbench\[gpu\]"):
        gpu_facts([0])


def test_visible_devices_by_index_and_by_uuid(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    show({"uuid": "GPU-aa"}, {"uuid": "GPU-bb"}, {"uuid": "GPU-cc"})
    for visible, wanted in (("2,0", [2, 0]), ("GPU-b", [1]), ("", []), ("7", [0, 1, 2]), ("GPU-cc,0", [2, 0])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [gpu.index for gpu in gpus()] == wanted, visible


def test_gpus_given_in_the_suite(show: Show) -> None:
    show({}, {}, {}, {})
    assert [one.index for one in machine_gpus(suite(gpu_count=2), False)] == [0, 1, 2, 3]
    assert {one.index for one in machine_gpus(suite(gpu_count=2, gpu_ids=(3, 1)), False)} == {3, 1}
    assert list(gpu_obstacles(suite(gpu_count=2, gpu_ids=(3, 1)), suite().variants, gpus())) == []
    assert list(gpu_obstacles(suite(gpu_count=2, gpu_ids=(3, 1)), suite().variants, ())) == []
    (sentence,) = gpu_obstacles(suite(gpu_count=2, gpu_ids=(3,)), suite().variants, gpus())
    assert sentence == "the suite needs 2 GPUs and this machine has 1 (NVIDIA H200)"


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n", timeout=20)


def test_who_holds_a_gpu_is_named(show: Show, sleeper: int) -> None:
    show({"used_bytes": 70 * GIB, "processes": [[sleeper, 69 * GIB], [2**22 + 5, None]]}, {"used_bytes": 2 * GIB})
    held, free = gpu_uses([0, 1])
    assert (held.is_free, free.is_free) == (False, True)
    assert held.sentence.startswith(f"GPU 0: 70.0 of 140.0 GiB are held by process {sleeper} (python")
    assert held.sentence.endswith(f"process {2**22 + 5} (not visible from here)")
    assert (gpu_memory_released([0, 1]), gpu_memory_released([1]), gpu_memory_released([])) == (False, True, True)


def test_a_launch_waits_until_the_memory_is_back(show: Show) -> None:
    async def scene() -> None:
        show({"used_bytes": 70 * GIB})
        with pytest.raises(LaunchError) as caught:
            await wait_released([0], limit_s=0.05)
        assert caught.value.kind == "gpu_in_use"
        assert (
            "GPU 0: 70.0 of 140.0 GiB are held by a process that can't be seen from here; nothing was" in caught.value.cause
        )
        waiting = asyncio.create_task(wait_released([0]))
        await asyncio.sleep(0)
        assert not waiting.done()
        show({})
        await waiting

    asyncio.run(scene())


def test_a_sample_names_foreign_processes(show: Show, sleeper: int) -> None:
    show({"processes": [[sleeper, GIB], [2**22 + 5, GIB]]})
    with nvml() as library:
        ours, theirs = sample(library, [0], os.getpid()), sample(library, [0], 1 << 21)
    assert ours["gpus"][0]["sm_clock_mhz"] == 1980
    assert ours["foreign"] == []
    assert [(one["pid"], one["gpu"]) for one in theirs["foreign"]] == [(sleeper, 0)]
    assert is_below(sleeper, os.getpid()) is True
    assert is_below(2**22 + 5, os.getpid()) is None


def test_the_sampling_process(show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It samples at once and then every second; it ends with its input; it tells what it can't read."""
    (tmp_path / "pynvml.py").write_bytes(Path(fake_nvml.__file__).read_bytes())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(Path(__file__).parents[3]))))
    show({"sm_clock_mhz": 1500, "processes": [[1, 1]]})
    seen: list[tuple[str, Any]] = []

    async def scene(way: tuple[str, ...] = (), node: str | None = None) -> None:
        got = asyncio.Event()

        def take(name: str, value: Any, at_s: float) -> None:
            seen.append((name, value))
            got.set()

        telemetry = Telemetry([0], take, way, node)
        await telemetry.start()
        await asyncio.wait_for(got.wait(), 60)
        process = telemetry._process
        await telemetry.close()
        assert process is not None
        assert process.returncode == 0

    asyncio.run(scene())
    assert seen[0][0] == "gpus"
    assert seen[0][1]["gpus"][0]["sm_clock_mhz"] == 1500
    assert [one["pid"] for one in seen[0][1]["foreign"]] == [1]
    seen.clear()
    asyncio.run(scene(("/usr/bin/env",), "n2"))
    assert (seen[0][1]["node"], seen[0][1]["foreign"]) == ("n2", [])
    assert "ended" not in dict(seen)
    monkeypatch.setenv("FAKE_NVML", "")
    asyncio.run(scene())
    assert seen[-1] == ("unreadable", {"reason": "NVML: NVML Shared Library Not Found"})
