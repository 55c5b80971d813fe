"""Inside a job: runs its launches on the nodes that Slurm gave, and stores them in the run's folder.

`python -m specbench.execution.launchers.job`, with the order on standard input; started by sbatch, by nobody else. A harness
that dies does not matter to it; SIGTERM (scancel, the time limit) ends its launch as Ctrl-C ends one here.
"""

import asyncio
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from specbench import clock, datasets
from specbench.errors import SpecbenchError
from specbench.execution.bench import Bench, obstacles, prepare
from specbench.execution.interrupt import SIGNALLED, Interrupt
from specbench.execution.launchers import queue
from specbench.execution.launchers.local import Local
from specbench.execution.launchers.orders import Order, job_path
from specbench.execution.loop import loop_factory
from specbench.execution.reaper import end_leftovers
from specbench.plan import Plan
from specbench.records import Event, TrialRecord
from specbench.store import RunWriter


def main() -> int:
    """0, or 128 and the signal's number."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    folder = Path(order.folder)
    with job_path(folder, order.name, "events").open("ab", buffering=0) as told:
        bench = Bench(
            plan=Plan(suite=order.suite, trials=order.trials, estimate_s=0.0),
            on_event=partial(_write, told),
            rehearsal=order.rehearsal,
            ports=range(order.ports[0], order.ports[1] + 1),
            refused=order.refused,
        )
        asyncio.run(end_leftovers(lambda text: bench.on_event(Event(kind="note", text=text))))
        _look_for_obstacles(bench, order)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_launch_all(bench, order, RunWriter(folder)))


def _write(told: BinaryIO | io.FileIO, event: Event) -> None:
    told.write(msgspec.json.encode(event) + b"\n")


def _look_for_obstacles(bench: Bench, order: Order) -> None:
    """What is lacking on this node becomes the failure of its launches: the harness could not know."""
    found = list(asyncio.run(obstacles(bench)))
    for name, asked in order.datasets.items():
        if name in bench.prompts and datasets.digest(bench.prompts[name]) != asked["sha256"]:
            found.append(f"the prompts of workload '{name}' are others on this node than where the run was begun")
    try:
        if not found:
            prepare(bench)
    except SpecbenchError as error:
        found.append(str(error))
    if found:
        bench.lacking = f"on node {_node()}: {'; '.join(found)}"


def _node() -> str:
    return os.environ.get("SLURMD_NODENAME", "?")


async def _launch_all(bench: Bench, order: Order, writer: RunWriter) -> int:
    interrupt, done = Interrupt(), list[TrialRecord]()
    with interrupt.listening():
        nodes = await queue.nodes_of(os.environ["SLURM_JOB_NODELIST"])
        nodes = (_node(), *(name for name in nodes if name != _node()))
        address = await queue.address_of(nodes[0])
        bench.on_event(Event(kind="note", text=f"{order.name} runs on {', '.join(nodes)} since {clock.utc_text()}"))
        await Local(bench, writer, interrupt, list(order.trials), done, nodes, address).run()
    return SIGNALLED + interrupt.number if interrupt.asked else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SpecbenchError as error:
        sys.exit(f"specbench: {error}")
