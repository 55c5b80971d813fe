"""Is the place free for the next launch? Who holds a port or a GPU's memory is named, with pid and command."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import psutil
from msgspec import Struct

from specbench import clock, processes
from specbench.units import Second

GpuHolders = Callable[[Sequence[int]], Sequence["GpuHolder"]]
"""Who holds memory of these GPUs now."""
RELEASE_LIMIT_S: Final = 15.0
POLL_S: Final = 0.25
NOTICEABLE_BYTES: Final = 1 << 30
"""Less is a display or a monitor, and no launch's business."""


class GpuHolder(Struct, frozen=True, kw_only=True):
    """A process and the GPU memory that it holds."""

    pid: int
    memory_bytes: int


def nobody(gpu_ids: Sequence[int]) -> Sequence[GpuHolder]:
    """Where the GPUs can't be asked, and where there are none."""
    del gpu_ids
    return ()


async def wait_released(
    gpu_ids: Sequence[int], holders: GpuHolders, tell: Callable[[str], None], limit_s: Second = RELEASE_LIMIT_S
) -> None:
    """Returns when nobody holds much of the GPUs' memory, or at the limit, having told who still does."""
    give_up_s = clock.now_s() + limit_s
    while gpu_ids and (found := _noticeable(gpu_ids, holders)):
        if clock.now_s() > give_up_s:
            for one in found:
                tell(f"{one.memory_bytes / 2**30:.1f} GiB of GPU memory are held by {process_words(one.pid)}")
            return
        await asyncio.sleep(POLL_S)


def _noticeable(gpu_ids: Sequence[int], holders: GpuHolders) -> list[GpuHolder]:
    return [one for one in holders(gpu_ids) if one.memory_bytes >= NOTICEABLE_BYTES]


def process_words(pid: int) -> str:
    """`process 123 (python server.py)`."""
    command = processes.command_line(pid)
    return f"process {pid} ({command})" if command else f"process {pid}, whose command can't be read"


def port_sentence(host: str, port: int) -> str:
    """That the port is taken, and by whom where the system tells."""
    holder = next(_listeners(port), None)
    who = process_words(holder) if holder else "another process, which only its owner or root can see"
    return f"port {port} on {host} is in use by {who}; nothing was launched"


def _listeners(port: int) -> Iterator[int]:
    try:
        found = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return
    for one in found:
        if one.laddr and one.laddr.port == port and one.status == psutil.CONN_LISTEN and one.pid:
            yield one.pid
