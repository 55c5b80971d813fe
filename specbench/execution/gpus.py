"""The GPUs of this machine, or those that SPECBENCH_GPUS simulates, and what is wrong with one."""

import json
import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from specbench.errors import SpecbenchError
from specbench.execution.nvml import FACTS, SAMPLE, nvml
from specbench.execution.unreadable import UnreadableError
from specbench.suite import Suite, Variant
from specbench.units import counted

SMI_TIMEOUT_S = 20.0
VARIABLE: Final = "SPECBENCH_GPUS"
"""A number of GPUs, or a JSON file with a list of objects: `index`, `name`, `memory_bytes`, `numa_node`, and `broken`,
why it does not work. A testing aid: nothing asks the driver then, and what a launch does with such GPUs is not real."""
MOST: Final = 1024


class Gpu(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU as NVML or `nvidia-smi` lists it."""

    index: int
    name: str
    memory_bytes: int | None
    uuid: str | None = None
    numa_node: int | None = None
    """Its side of the machine; None where nobody says."""
    is_simulated: bool = False
    broken: str | None = None
    """Why a simulated one does not work."""


def machine_gpus(suite: Suite, rehearsing: bool) -> tuple[Gpu, ...]:
    """Those that launches of this suite may hold here; empty where they hold none: on a CPU, and in a rehearsal that packs
    nothing. Raises SpecbenchError."""
    if suite.hardware.gpu_count == 0:
        return ()
    if suite.launcher == "slurm":
        return _imagined(_granted()) if rehearsing else gpus()
    found = simulated()
    if found is None and rehearsing:
        return () if suite.packing == "off" else _imagined(range(suite.hardware.gpu_count))
    found = gpus() if found is None else found
    given = suite.hardware.gpu_ids
    return tuple(one for one in found if one.index in given) or tuple(map(_given, given)) if given else found


def _granted() -> list[int]:
    """What Slurm gave this job on this node."""
    return [int(word) for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip().isdigit()]


def _imagined(indices: Collection[int]) -> tuple[Gpu, ...]:
    return tuple(Gpu(index=index, name="simulated", memory_bytes=None, is_simulated=True) for index in indices)


def simulated() -> tuple[Gpu, ...] | None:
    """What SPECBENCH_GPUS says now; None without it. Raises SpecbenchError."""
    value = os.environ.get(VARIABLE)
    if not value:
        return None
    if value.isdigit() and int(value) <= MOST:
        return _imagined(range(int(value)))
    try:
        return _listed_in(json.loads(Path(value).read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or error
        raise SpecbenchError(
            f"{VARIABLE}={value}: is neither a number of GPUs (at most {MOST}) nor a JSON file that lists them: {why}"
        ) from None


def _listed_in(document: Any) -> tuple[Gpu, ...]:
    """Of the file. Raises ValueError."""
    if not isinstance(document, list) or not all(isinstance(one, dict) for one in document):
        raise ValueError('it must be a list of objects such as [{"index": 0}, {"index": 1}]')
    whole = [{"name": "simulated", "memory_bytes": None} | one | {"is_simulated": True} for one in document]
    found = msgspec.convert(whole, list[Gpu])
    indices = [one.index for one in found]
    if below := [index for index in indices if index < 0]:
        raise ValueError(f"GPU {below[0]}: indices count from 0 on")
    if twice := [index for index in indices if indices.count(index) > 1]:
        raise ValueError(f"GPU {twice[0]} is listed {indices.count(twice[0])} times")
    return tuple(found)


def gpu_troubles(gpu_ids: Collection[int]) -> dict[int, str]:
    """By index: why a GPU does not work any more. Empty where all do, or nobody can be asked."""
    found = simulated()
    if found is not None:
        return {one.index: one.broken for one in found if one.index in gpu_ids and one.broken}
    try:
        with nvml() as library:
            read = [library.read(index, SAMPLE) for index in gpu_ids]
    except UnreadableError:
        return {}
    return {one["index"]: "the driver does not reach it any more" for one in read if one["lost"]}


def gpus() -> tuple[Gpu, ...]:
    """Those that are simulated; else those that NVML lists, or `nvidia-smi`, and CUDA_VISIBLE_DEVICES leaves."""
    shown = simulated()
    if shown is not None:
        return shown
    found = _by_nvml() or _by_smi()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not found:
        return tuple(found)
    chosen = [_named(part.strip(), found) for part in visible.split(",") if part.strip()]
    return tuple(found) if chosen and not any(chosen) else tuple(gpu for gpu in chosen if gpu is not None)


def _named(part: str, found: Sequence[Gpu]) -> Gpu | None:
    """By index, or by (the beginning of) its UUID."""
    if part.isdigit():
        return next((gpu for gpu in found if gpu.index == int(part)), None)
    return next((gpu for gpu in found if gpu.uuid and gpu.uuid.startswith(part)), None)


def _by_nvml() -> list[Gpu]:
    try:
        with nvml() as library:
            facts = [library.read(index, FACTS) for index in range(library.count())]
    except UnreadableError:
        return []
    return [
        Gpu(
            index=one["index"],
            name=one["name"] or "unknown",
            memory_bytes=one["memory_bytes"],
            uuid=one["uuid"],
            numa_node=one["numa_node"],
        )
        for one in facts
    ]


def _by_smi() -> list[Gpu]:
    rows = (line.split(", ") for line in smi("index,name,memory.total").splitlines())
    return [Gpu(index=int(row[0]), name=row[1], memory_bytes=_mebibytes(row[2])) for row in rows if len(row) == 3]


def _mebibytes(text: str) -> int | None:
    number = text.removesuffix(" MiB")
    return int(number) * 2**20 if number.isdigit() else None


def smi(fields: str) -> str:
    """`nvidia-smi`'s CSV for these fields; empty when there is no such program or it fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, f"--query-gpu={fields}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=SMI_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def gpu_obstacles(suite: Suite, variants: Collection[Variant], found: Collection[Gpu]) -> Iterator[str]:
    """A sentence for each need that this machine does not meet."""
    given = suite.hardware.gpu_ids
    if given:
        found = [one for one in found if one.index in given] or [_given(index) for index in given]
    if suite.hardware.gpu_count > len(found):
        yield f"the suite needs {counted(suite.hardware.gpu_count, 'GPU')} and this machine has {_listed(found)}"
        return
    for variant in variants if suite.hardware.gpu_count else ():
        needed = variant.gpu_count
        if needed > len(found):
            yield f"variant '{variant.name}' needs {counted(needed, 'GPU')} and this machine has {_listed(found)}"


def _given(index: int) -> Gpu:
    return Gpu(index=index, name="given in the suite", memory_bytes=None)


def _listed(found: Collection[Gpu]) -> str:
    if not found:
        return f"none, as {VARIABLE} says" if os.environ.get(VARIABLE) else "none that NVML or nvidia-smi shows"
    return f"{len(found)} ({', '.join(gpu.name for gpu in found)})"
