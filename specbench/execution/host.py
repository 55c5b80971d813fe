"""The machine, read from /proc and /sys: what a figure depends on and nobody remembers later."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from specbench.execution.unreadable import UnreadableError

CPUS: Final = Path("/sys/devices/system/cpu")
NODES: Final = Path("/sys/devices/system/node")
CGROUP: Final = Path("/sys/fs/cgroup")
FABRIC: Final = Path("/sys/class/infiniband")
SHOWN: Final = re.compile(
    r"(?:CUDA|NCCL|NVIDIA|SGLANG|SGL|VLLM|TORCH|PYTORCH|TRITON|FLASHINFER|OMP|MKL|OPENBLAS|OV|HF_HUB|TRANSFORMERS)_.*"
    r"|CUDA_VISIBLE_DEVICES|LD_PRELOAD|MALLOC_.*|GLIBC_TUNABLES|SPECBENCH_(?!SIMULATION).*"
)
"""Variables that change how an engine runs."""
SMI_TIMEOUT_S: Final = 20.0


def governor() -> str:
    """Of all CPUs that tell; several are joined."""
    found = {path.read_text().strip() for path in CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    if not found:
        raise UnreadableError("the kernel shows no CPU frequency governor here, as in most virtual machines")
    return ", ".join(sorted(found))


def multithreading() -> str:
    """Whether cores share hardware threads: `on`, `off`, `notsupported`, …"""
    return _line(CPUS / "smt" / "control", "the kernel does not say whether cores share threads")


def numa_nodes() -> dict[str, str]:
    """CPUs of each memory node."""
    found = {path.name: (path / "cpulist").read_text().strip() for path in sorted(NODES.glob("node[0-9]*"))}
    if not found:
        raise UnreadableError("the kernel shows no memory nodes")
    return found


def cgroup_limits() -> dict[str, str]:
    """CPU and memory limits of this container or service; `max` is none."""
    own = Path("/proc/self/cgroup").read_text().strip().splitlines()[-1].rpartition(":")[2]
    for folder in (CGROUP / own.lstrip("/"), CGROUP):
        found = {
            name: (folder / name).read_text().strip() for name in ("cpu.max", "memory.max") if (folder / name).is_file()
        }
        if found:
            return found
    raise UnreadableError("this control group (version 2) shows no limits")


def operating_system() -> str:
    """`PRETTY_NAME` of os-release."""
    for line in Path("/etc/os-release").read_text(errors="replace").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    raise UnreadableError("/etc/os-release names no system")


def clock_source() -> str:
    """What the kernel counts time with."""
    return _line(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"), "the kernel does not say")


def huge_pages() -> str:
    """The chosen mode of transparent huge pages."""
    text = _line(Path("/sys/kernel/mm/transparent_hugepage/enabled"), "the kernel has no transparent huge pages")
    chosen = re.search(r"\[(\w+)\]", text)
    return chosen.group(1) if chosen else text


def fabric_devices() -> list[str]:
    """InfiniBand and RoCE adapters."""
    if not FABRIC.is_dir():
        raise UnreadableError("there are no InfiniBand devices")
    return sorted(path.name for path in FABRIC.iterdir())


@cache
def topology() -> str:
    """How GPUs, processors and adapters are connected, as `nvidia-smi topo -m` draws it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise UnreadableError("there is no nvidia-smi, which draws it")
    try:
        done = subprocess.run([program, "topo", "-m"], capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"nvidia-smi did not answer within {SMI_TIMEOUT_S:g} s") from None
    if done.returncode or not done.stdout.strip():
        raise UnreadableError(f"nvidia-smi topo -m failed with exit code {done.returncode}")
    return done.stdout


def scheduler_job() -> dict[str, str]:
    """Slurm's job, where one runs."""
    names = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_GPUS_ON_NODE")
    found = {name: os.environ[name] for name in names if name in os.environ}
    if not found:
        raise UnreadableError("no Slurm job")
    return found


def variables() -> dict[str, str]:
    """Of the shell, those that change how an engine runs. May hold secrets: clean it."""
    return {name: value for name, value in sorted(os.environ.items()) if SHOWN.fullmatch(name)}


def _line(path: Path, otherwise: str) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        raise UnreadableError(otherwise) from None


READERS: Final[Mapping[str, Callable[[], Any]]] = {
    "operating_system": operating_system,
    "cpu_governor": governor,
    "cpu_multithreading": multithreading,
    "numa_nodes": numa_nodes,
    "cgroup_limits": cgroup_limits,
    "clock_source": clock_source,
    "huge_pages": huge_pages,
    "fabric_devices": fabric_devices,
    "topology": topology,
    "scheduler_job": scheduler_job,
    "variables": variables,
    "load_average": lambda: list(os.getloadavg()),
}
