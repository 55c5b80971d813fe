"""How many client processes a level needs: so many that each keeps half of its core free."""

import math
import os
from typing import Final, NamedTuple

from specbench.execution.selftest import SelfTest
from specbench.suite import Suite, Workload
from specbench.units import PerSecond

SAFE_CORE_RATIO: Final = 0.5
"""Of a core: above it the client's own lateness grows."""
USUAL_CHUNKS_RPS: Final = 15_000.0
"""Chunks a second that one process takes at this share where no self-test was made: 30 µs each, and a little spare."""


UNLIMITED: Final = 1024


def one_process_rps(measured: SelfTest | None) -> PerSecond:
    """Chunks a second that one client process may be offered on this machine, by its last self-test."""
    paced = [one.cpu_per_chunk_s for one in measured.paced if one.chunk_count and not one.failed_count] if measured else []
    return SAFE_CORE_RATIO / max(paced) if paced and max(paced) > 0 else USUAL_CHUNKS_RPS


def offered_rps(suite: Suite, workload: Workload, concurrency: int) -> PerSecond:
    """The most chunks a second that a level may bring: every stream at the expected pace, a token a chunk."""
    arrival = workload.arrival
    if arrival is None:
        return concurrency * suite.expected.per_user_tps
    return (arrival.rate_rps or 0.0) * workload.max_output_tokens


def peak_rps(suite: Suite) -> PerSecond:
    """Of the suite's heaviest level."""
    return max(offered_rps(suite, one, concurrency) for one in suite.workloads for concurrency in one.concurrency)


class Width(NamedTuple):
    """Servers whose loads this machine can drive at the same time."""

    servers_count: int
    sentence: str | None = None
    """What limits it; None where nothing does."""


def packed_width(suite: Suite, limit_rps: PerSecond, rehearsing: bool) -> Width:
    """Each packed server's load comes from client processes of its own; together they must keep half of the cores but one
    free. A rehearsal is not narrowed: its figures are of no machine."""
    if rehearsing:
        return Width(UNLIMITED)
    cores_count, each_rps = usable_cores_count(), peak_rps(suite)
    count = max(1, int((cores_count - 1) * limit_rps / each_rps)) if each_rps else UNLIMITED
    all_rps = max(1, cores_count - 1) * limit_rps
    times = f"{count} {'server' if count == 1 else 'servers'} at a time"
    return Width(
        count,
        f"packing is narrowed to {times}: one server's load brings up to {each_rps:.0f} chunks a second, and the clients of "
        f"this machine, with {cores_count} cores, take {all_rps:.0f} (specbench selftest measures it)",
    )


def usable_cores_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes_count(chunks_rps: PerSecond, limit_rps: PerSecond, streams_count: int | None) -> int:
    """Never more than there are streams, or cores but one: the servers need theirs."""
    most = max(1, usable_cores_count() - 1)
    return max(1, min(math.ceil(chunks_rps / limit_rps), most, streams_count or most))
