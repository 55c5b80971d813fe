"""A server over several nodes: one command a rank, and one life. The death of any rank is the death of the launch."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from specbench.engines import Command
from specbench.execution.bench import Bench
from specbench.execution.server import COMMAND, Runs, Server, start
from specbench.execution.slots import Place
from specbench.execution.telemetry import Sink, Telemetry
from specbench.plan import Slot
from specbench.records import ServerProcess
from specbench.suite import Variant
from specbench.units import Second

STEP = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--input=0", "--kill-on-bad-exit=1", "--quiet")
"""Runs our watcher on another node of the job: its pipes are ours, and it ends when they do."""


class Ranks:
    """Rank 0 with the HTTP port, here, and the others on their nodes. `logs`: one a rank; `nodes`: their names."""

    def __init__(self, servers: Sequence[Server], logs: Sequence[Path], nodes: Sequence[str]) -> None:
        self._servers, self._logs, self._nodes = servers, logs, nodes
        self.exited = asyncio.create_task(self._first_end())
        self._first = 0
        """The rank that ended first; 0 while all run."""

    async def _first_end(self) -> None:
        await asyncio.wait({server.exited for server in self._servers}, return_when=asyncio.FIRST_COMPLETED)
        self._first = next(rank for rank, server in enumerate(self._servers) if server.exited.done())

    @property
    def _dead(self) -> Server:
        return self._servers[self._first]

    @property
    def dead_rank(self) -> tuple[str, Path] | None:
        """`rank 1 on node n2`, and its log."""
        return (f"rank {self._first} on node {self._nodes[self._first]}", self._logs[self._first]) if self._first else None

    @property
    def exit_code(self) -> int | None:
        """Of the rank that ended."""
        return self._dead.exit_code

    @property
    def watcher_died(self) -> bool:
        """Of the rank that ended."""
        return self._dead.watcher_died

    @property
    def process(self) -> ServerProcess | None:
        """Rank 0."""
        return self._servers[0].process

    def look_around(self) -> None:
        """See `Server`."""
        self._servers[0].look_around()

    async def stop(self, grace_s: Second, hurry: asyncio.Event) -> tuple[int, ...]:
        """All of them at once. Pids of other nodes say nothing here, so they are left out."""
        ended = await asyncio.gather(*(server.stop(grace_s, hurry) for server in self._servers))
        self.exited.cancel()
        return ended[0]


async def start_ranks(bench: Bench, variant: Variant, slot: Slot, command: Command, log_path: Path) -> Runs:
    """Rank 0's `command`, and those of the other nodes with logs of their own beside it. Raises LaunchError."""
    first = await start(command, log_path, variant.server.host, slot.port)
    if len(slot.nodes) < 2:
        return first
    servers, logs = [first], [log_path]
    try:
        for rank in range(1, len(slot.nodes)):
            order = bench.command(variant, slot, rank)
            logs.append(log_path.with_name(f"{log_path.stem}.rank{rank}{log_path.suffix}"))
            step = step_on(slot.nodes[rank], len(slot.gpu_ids))
            servers.append(await start(order, logs[-1], "", 0, (*step, *COMMAND)))
    except BaseException:
        await asyncio.gather(*(server.stop(0.0, asyncio.Event()) for server in servers))
        raise
    return Ranks(servers, logs, slot.nodes)


def step_on(node: str, gpus_count: int) -> tuple[str, ...]:
    """Words that run a command on another node of this job; a step gets no GPU unless it asks."""
    gpus = (f"--gres=gpu:{gpus_count}",) if gpus_count else ()
    return (*STEP, f"--nodelist={node}", *gpus)


def samplers(place: Place, sink: Sink) -> tuple[Telemetry, ...]:
    """One on each node."""
    gpu_ids = place.asked_gpu_ids
    far = (Telemetry(gpu_ids, sink, step_on(node, len(gpu_ids)), node) for node in place.nodes[1:])
    return (Telemetry(gpu_ids, sink), *far)
