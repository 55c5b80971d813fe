"""How true the load client's clock is on this machine, and what it costs: measured against a server that knows the truth.

Three loads in turn: streams that run freely, streams in lockstep (as an engine's steps come), and as much as it can take.
"""

import asyncio
import itertools
import platform
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

import specbench
from specbench import clock, engines
from specbench.datasets import Prompt
from specbench.execution.client import LoadClient, open_client
from specbench.execution.load import Level, Load, Target
from specbench.execution.truth import Script, Sent
from specbench.execution.truth_process import take_dump, truth_server
from specbench.models import cache_folder
from specbench.records import RequestRecord
from specbench.suite import Workload
from specbench.units import PerSecond, Ratio, Second

STREAMS: Final = 64
STEP_S: Final = 0.02
PACED_SHARE: Final = 0.35
"""Of the time, for each of the two paced loads; the rest is start-up and the flood."""
FLOOD_STREAMS: Final = 16
FLOOD_CHUNKS_PER_S: Final = 250
"""Chunks of each flooded stream for each second of the whole test."""
FLOOD_CHUNKS_PER_WRITE: Final = 16
TIMEOUT_S: Final = 60.0


class Drive(Struct, kw_only=True):
    """What one load gave."""

    records: list[RequestRecord]
    dump: list[Sent]
    zero_s: Second
    wall_s: Second
    cpu_s: Second

    @property
    def chunk_count(self) -> int:
        """Chunks that arrived."""
        return sum(len(record.chunk_s) for record in self.records)


class PacedLoad(Struct, frozen=True, kw_only=True):
    """How the client did with streams of a fixed pace."""

    name: str
    chunk_count: int
    failed_count: int
    cpu_per_chunk_s: Second
    """User and system time of this process, with requests, decoding and records."""
    late_p50_s: Second
    """Recorded arrival after the server's own stamp of the sending."""
    late_p99_s: Second
    ttft_error_p99_s: Second
    """Recorded first chunk after the server's own stamp of it."""


class SelfTest(Struct, frozen=True, kw_only=True):
    """One self-test, as it is stored."""

    at_utc: str
    host: str
    specbench_version: str
    streams_count: int
    paced: tuple[PacedLoad, ...]
    saturated_rps: PerSecond
    """Chunks a second when the server sends as fast as it can."""
    saturated_core_ratio: Ratio
    """Part of a core that the client used then: well below 1, the server was the limit and the client can take more."""
    clock: str
    """What stamped the arrivals: `kernel` or `loop`."""


async def measure(seconds_s: Second) -> SelfTest:
    """Takes about so long. Raises LaunchError when the server does not start, SpecbenchError when no answer came."""
    chunk_count = max(10, round(seconds_s * PACED_SHARE / STEP_S))
    with truth_server() as url:
        async with open_client(url) as client:
            await drive(client, list(scripts("warm", STREAMS, 20, lockstep=False)))
            free = await drive(client, list(scripts("free", STREAMS, chunk_count, lockstep=False)))
            lockstep = await drive(client, list(scripts("lockstep", STREAMS, chunk_count, lockstep=True)))
            flood = await drive(client, list(flood_scripts(round(seconds_s * FLOOD_CHUNKS_PER_S))))
    return SelfTest(
        at_utc=clock.utc_text(),
        host=platform.node(),
        specbench_version=specbench.__version__,
        streams_count=STREAMS,
        paced=(paced("free-running", free), paced("lockstep", lockstep)),
        saturated_rps=flood.chunk_count / flood.wall_s,
        saturated_core_ratio=flood.cpu_s / flood.wall_s,
        clock="kernel" if all(one.clock == "kernel" for one in free.records + lockstep.records) else "loop",
    )


def scripts(name: str, stream_count: int, chunk_count: int, lockstep: bool) -> Iterator[Script]:
    """Streams whose first chunks are spread over a step."""
    for index in range(stream_count):
        first_s = 0.2 + index * STEP_S / stream_count
        yield Script(name=f"{name}{index}", first_s=first_s, step_s=STEP_S, chunk_count=chunk_count, lockstep=lockstep)


def flood_scripts(chunk_count: int) -> Iterator[Script]:
    """Streams that come as fast as the server can write."""
    for index in range(FLOOD_STREAMS):
        yield Script(name=f"flood{index}", step_s=0, chunk_count=chunk_count, events_per_write=FLOOD_CHUNKS_PER_WRITE)


async def drive(client: LoadClient, given: Sequence[Script]) -> Drive:
    """One request a stream, all at once, the way a run sends them."""
    records: list[RequestRecord] = []
    prompts = tuple(Prompt(id=one.name, category="", turns=(msgspec.json.encode(one).decode(),)) for one in given)
    level = Level(workload=Workload(name="selftest", timeout_s=TIMEOUT_S), concurrency=len(prompts), prompts=prompts)
    zero_s, cpu_before_s = clock.now_s(), cpu_s()
    target = Target(engine=engines.get("external"), client=client, served_model="truth", version=None, zero_s=zero_s)
    await Load(target, records.append).drive(level)
    wall_s, used_s = clock.now_s() - zero_s, cpu_s() - cpu_before_s
    return Drive(records=records, dump=await take_dump(client), zero_s=zero_s, wall_s=wall_s, cpu_s=used_s)


def paced(name: str, driven: Drive) -> PacedLoad:
    """The client's times held against the server's."""
    sent = {one.name: one.sent_s for one in driven.dump}
    served = [one for one in driven.records if one.error is None and len(one.chunk_s) == len(sent[one.prompt_id])]
    late_s = [
        [at_s + driven.zero_s - true_s for at_s, true_s in zip(one.chunk_s, sent[one.prompt_id], strict=True)]
        for one in served
    ]
    all_late_s = sorted(itertools.chain.from_iterable(late_s))
    return PacedLoad(
        name=name,
        chunk_count=driven.chunk_count,
        failed_count=len(driven.records) - len(served),
        cpu_per_chunk_s=driven.cpu_s / max(1, driven.chunk_count),
        late_p50_s=at_share(all_late_s, 0.5),
        late_p99_s=at_share(all_late_s, 0.99),
        ttft_error_p99_s=at_share(sorted(one[0] for one in late_s), 0.99),
    )


def at_share(ordered: Sequence[float], share: Ratio) -> float:
    """The nearest order statistic. Infinite without any value: nothing arrived."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


def cpu_s() -> Second:
    """User and system time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def stored_path() -> Path:
    """Where the last one is kept."""
    return cache_folder() / "selftest.json"


def store(result: SelfTest) -> None:
    """Keeps it for the runs to come."""
    path = stored_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


def last() -> SelfTest | None:
    """The last one of this machine; None when there is none, or none that can be read."""
    try:
        found = msgspec.json.decode(stored_path().read_bytes(), type=SelfTest)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.host == platform.node() else None


def run(seconds_s: Second) -> SelfTest:
    """Measures and stores."""
    from specbench.execution.loop import loop_factory

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        result = runner.run(measure(seconds_s))
    store(result)
    return result
