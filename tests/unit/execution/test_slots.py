"""GPUs and ports."""

import socket
from pathlib import Path

import pytest

from specbench.errors import LaunchError
from specbench.execution.gpus import gpu_obstacles, gpus, machine_gpus
from specbench.execution.slots import Place, free_port, lease, port_is_free
from specbench.suite import Hardware, Model, Server, Suite, Variant, Workload

ROWS = "".join(f"{index}, NVIDIA H200, 143771 MiB\\n" for index in range(4))


def suite(gpu_count: int = 0, tensor_parallel: int = 1) -> Suite:
    variant = Variant(name="v", engine="fake", server=Server(tensor_parallel=tensor_parallel))
    return Suite(
        name="s",
        path="s.yaml",
        model=Model(path="m"),
        variants=(variant,),
        baseline="v",
        workloads=(Workload(name="w"),),
        hardware=Hardware(gpu_count=gpu_count),
    )


@pytest.fixture
def four_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `nvidia-smi` that lists four."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{ROWS}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_port_in_use_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert not port_is_free("127.0.0.1", port)
        with pytest.raises(LaunchError, match=f"port {port} on 127.0.0.1 is in use by another process"):
            free_port("127.0.0.1", range(port, port + 1))
    assert port_is_free("127.0.0.1", port)


def test_a_host_that_is_not_here_is_told_at_once() -> None:
    with pytest.raises(LaunchError, match=r"server\.host nowhere\.invalid is no address of this machine"):
        free_port("nowhere.invalid")
    with pytest.raises(LaunchError, match=r"server\.host 192\.0\.2\.1 is no address of this machine"):
        free_port("192.0.2.1")


def test_a_port_taken_on_every_address_is_seen() -> None:
    with socket.create_server(("0.0.0.0", 0)) as other:
        assert not port_is_free("127.0.0.1", other.getsockname()[1])


def test_the_ports_of_leases_differ() -> None:
    port = free_port("127.0.0.1")
    while not port_is_free("127.0.0.1", port + 1):
        port = free_port("127.0.0.1")
    leased: set[int] = set()
    slots = [lease(suite().variants[0], Place(gpu_ids=(3,)), range(port, port + 2), leased) for _ in range(2)]
    assert {slot.port for slot in slots} == {port, port + 1}
    assert leased == {one for slot in slots for one in (slot.port, slot.nccl_port)}
    assert len(leased) == 4
    assert slots[0].gpu_ids == (3,)


@pytest.mark.usefixtures("four_gpus")
def test_gpus_that_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert next((gpu.index, gpu.name, gpu.memory_bytes) for gpu in gpus()) == (0, "NVIDIA H200", 143771 * 2**20)
    assert [one.index for one in machine_gpus(suite(2, 2), False)] == [0, 1, 2, 3]
    assert machine_gpus(suite(0), False) == machine_gpus(suite(2, 2), True) == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert [one.index for one in machine_gpus(suite(2, 2), False)] == [3, 1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus() == ()


@pytest.mark.usefixtures("four_gpus")
def test_enough_gpus_are_no_obstacle() -> None:
    one = suite(4, 4)
    assert list(gpu_obstacles(one, one.variants, gpus())) == []


@pytest.mark.usefixtures("four_gpus")
def test_too_few_gpus() -> None:
    for one, sentence in ((suite(8, 8), "the suite needs 8 GPUs"), (suite(2, 8), "variant 'v' needs 8 GPUs")):
        (found,) = gpu_obstacles(one, one.variants, gpus())
        assert found.startswith(sentence)
        assert "this machine has 4 (NVIDIA H200" in found


@pytest.mark.usefixtures("no_gpu")
def test_no_gpu() -> None:
    one = suite(8, 8)
    assert list(gpu_obstacles(one, one.variants, gpus())) == [
        "the suite needs 8 GPUs and this machine has none that NVML or nvidia-smi shows"
    ]
    cpu = suite(0, 1)
    assert list(gpu_obstacles(cpu, cpu.variants, gpus())) == []
