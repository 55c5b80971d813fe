"""Who holds the memory of a GPU: before a launch it must be free, or its holder is named."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import psutil
from msgspec import Struct

from specbench import clock
from specbench.errors import LaunchError
from specbench.execution.gpus import gpu_troubles
from specbench.execution.nvml import nvml
from specbench.execution.slots import Place
from specbench.execution.unreadable import UnreadableError
from specbench.units import Second

FREE_RATIO: Final = 0.05
"""Of a GPU's memory: the driver's own share, and that of a desktop."""
RELEASE_S: Final = 30.0
"""How long the last server's memory may take to come back."""
POLL_S: Final = 0.25
GIB: Final = 2**30


class GpuUse(Struct, frozen=True, kw_only=True):
    """One GPU's memory, and the processes that NVML names."""

    gpu_id: int
    used_bytes: int
    total_bytes: int
    occupants: tuple[dict[str, Any], ...] = ()
    """`pid`, `name` and `user` (None where the process can't be seen from here), `used_bytes`."""

    @property
    def is_free(self) -> bool:
        """Whether nobody holds more than the driver's share."""
        return self.used_bytes <= FREE_RATIO * self.total_bytes

    @property
    def sentence(self) -> str:
        """`GPU 0: 70.1 of 139.8 GiB are held by process 4711 (python3 of ann, 70.0 GiB)`."""
        holders = ", ".join(map(_named, self.occupants)) or "a process that can't be seen from here"
        return f"GPU {self.gpu_id}: {self.used_bytes / GIB:.1f} of {self.total_bytes / GIB:.1f} GiB are held by {holders}"


def gpu_uses(gpu_ids: Sequence[int]) -> tuple[GpuUse, ...]:
    """Empty for no GPUs. Raises UnreadableError where NVML can't be asked."""
    if not gpu_ids:
        return ()
    with nvml() as library:
        return tuple(_use(library, gpu_id) for gpu_id in gpu_ids)


def gpu_memory_released(gpu_ids: Sequence[int]) -> bool | None:
    """Whether all are free; None where that can't be told."""
    try:
        return all(use.is_free for use in gpu_uses(gpu_ids))
    except UnreadableError:
        return None


async def wait_released(gpu_ids: Sequence[int], limit_s: Second = RELEASE_S) -> None:
    """Until all are free. Raises LaunchError `gpu_in_use`, naming the holders. Passes at once where nothing can be told."""
    give_up_s = clock.now_s() + limit_s
    while held := _held(gpu_ids):
        if clock.now_s() > give_up_s:
            raise LaunchError("gpu_in_use", f"{'; '.join(held)}; nothing was launched after {limit_s:g} s of waiting")
        await asyncio.sleep(POLL_S)


async def wait_usable(place: Place) -> None:
    """The same for a launch's GPUs, once all of them work. Raises LaunchError `gpu_lost` too."""
    troubles = gpu_troubles(place.gpu_ids)
    if troubles:
        raise LaunchError("gpu_lost", "; ".join(f"GPU {index}: {why}" for index, why in troubles.items()))
    if not place.are_simulated:
        await wait_released(place.gpu_ids)


def strangers(gpu_ids: Sequence[int]) -> set[int]:
    """Those that somebody holds; empty where nothing can be told."""
    try:
        return {use.gpu_id for use in gpu_uses(gpu_ids) if not use.is_free}
    except UnreadableError:
        return set()


def _held(gpu_ids: Sequence[int]) -> list[str]:
    try:
        return [use.sentence for use in gpu_uses(gpu_ids) if not use.is_free]
    except UnreadableError:
        return []


def occupant(pid: int, used_bytes: int | None) -> dict[str, Any]:
    """A process as it is stored."""
    try:
        process = psutil.Process(pid)
        name, user = process.name(), process.username()
    except psutil.Error:
        return {"pid": pid, "name": None, "user": None, "used_bytes": used_bytes}
    return {"pid": pid, "name": name, "user": user, "used_bytes": used_bytes}


def is_below(pid: int, ancestor_pid: int) -> bool | None:
    """Whether a process descends from another; None where it can't be seen from here, as from inside a container."""
    try:
        return pid == ancestor_pid or any(one.pid == ancestor_pid for one in psutil.Process(pid).parents())
    except psutil.Error:
        return None


def _use(library: Any, gpu_id: int) -> GpuUse:
    memory = library.memory(gpu_id)
    try:
        found = tuple(occupant(*one) for one in library.occupants(gpu_id))
    except UnreadableError:
        found = ()
    return GpuUse(gpu_id=gpu_id, used_bytes=memory[0], total_bytes=memory[1], occupants=found)


def _named(one: dict[str, Any]) -> str:
    who = f"{one['name']} of {one['user']}" if one["name"] else "not visible from here"
    holds = f", {one['used_bytes'] / GIB:.1f} GiB" if one["used_bytes"] is not None else ""
    return f"process {one['pid']} ({who}{holds})"
