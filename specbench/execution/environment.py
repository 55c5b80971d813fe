"""What the run ran on. What can't be read is null, with the reason beside it."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

import specbench
from specbench.execution import host
from specbench.execution.gpus import gpus, smi
from specbench.execution.nvml import nvml
from specbench.execution.sources import container
from specbench.execution.unreadable import UnreadableError, read_all

GIT_TIMEOUT_S = 10.0


def environment() -> dict[str, Any]:
    """Names and their values; `reasons` says why a value is null."""
    return read_all(READERS)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    raise UnreadableError("/proc/cpuinfo has no model name")


def _cpus_allowed() -> int:
    return len(os.sched_getaffinity(0))


def _commit() -> str:
    """`-dirty` is added when tracked files were changed. A checkout that merely holds the environment is not ours."""
    folder = Path(specbench.__file__).parent
    _git(folder, "ls-files", "--error-unmatch", "__init__.py")
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *words: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise UnreadableError("there is no git here")
    try:
        done = subprocess.run(
            [git, "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"git did not answer within {GIT_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise UnreadableError("specbench does not run from a git checkout of its own")
    return done.stdout.strip()


def _gpus() -> list[dict[str, Any]]:
    found = [{"index": gpu.index, "name": gpu.name, "memory_bytes": gpu.memory_bytes} for gpu in gpus()]
    if not found:
        raise UnreadableError("neither NVML nor nvidia-smi shows a GPU")
    return found


def _driver() -> str:
    try:
        with nvml() as library:
            return library.driver()
    except UnreadableError as error:
        versions = smi("driver_version").split()
        if not versions:
            raise UnreadableError(f"nvidia-smi shows no driver; {error}") from None
        return versions[0]


def _cuda_version() -> str:
    with nvml() as library:
        return library.cuda_version()


def _proxy() -> str:
    from specbench.execution.transport import proxy_note

    return proxy_note() or "none in the environment"


def _selftest() -> dict[str, Any]:
    from specbench.execution.selftest import last

    found = last()
    if found is None:
        raise UnreadableError("none was run on this machine: specbench selftest")
    return dict(msgspec.to_builtins(found))


READERS: dict[str, Callable[[], Any]] = {
    "host": platform.node,
    "kernel": platform.platform,
    "machine": platform.machine,
    "cpu_model": _cpu_model,
    "cpu_count": lambda: psutil.cpu_count(logical=True),
    "cpu_allowed_count": _cpus_allowed,
    "memory_bytes": lambda: psutil.virtual_memory().total,
    "python": platform.python_version,
    "specbench_version": lambda: specbench.__version__,
    "specbench_commit": _commit,
    "gpus": _gpus,
    "gpu_driver": _driver,
    "cuda_version": _cuda_version,
    **host.READERS,
    "container": container,
    "proxy": _proxy,
    "selftest": _selftest,
}
