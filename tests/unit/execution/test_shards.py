"""Several client processes give what one would have given: the same requests, the same figures, one clock."""

import asyncio
import itertools
import os
import signal
from collections.abc import Callable
from typing import Any

import msgspec
import psutil
import pytest

from specbench import clock
from specbench.datasets import Prompt
from specbench.errors import LaunchError
from specbench.execution import scale
from specbench.execution.client import open_client
from specbench.execution.guard import guarded
from specbench.execution.load import Level
from specbench.execution.scale import one_process_rps, processes_count
from specbench.execution.selftest import PacedLoad, SelfTest
from specbench.execution.shard import Begin
from specbench.execution.shards import Shards, deal
from specbench.execution.stall import Stall
from specbench.execution.truth import Script, Sent
from specbench.execution.truth_process import take_dump, truth_server
from specbench.records import RequestRecord
from specbench.suite import Workload

TOLERANCE_S = 0.001


def level(count: int, concurrency: int, **fields: Any) -> Level:
    scripts = [Script(name=f"s{index}", chunk_count=5, token_counts=(1, 3, 2)) for index in range(count)]
    prompts = tuple(Prompt(id=one.name, category="c", turns=(msgspec.json.encode(one).decode(),)) for one in scripts)
    return Level(workload=Workload(name="w", **fields), concurrency=concurrency, prompts=prompts)


def shards(url: str, sink: Callable[[RequestRecord], None], zero_s: float = 0.0) -> Shards:
    begin = Begin(engine="external", base_url=url, served_model="m", version=None, zero_s=zero_s)
    return Shards(begin, sink)


def test_every_conversation_and_every_stream_is_in_one_part() -> None:
    for count, streams, processes in itertools.product((1, 5, 16), (1, 3, 8), (1, 2, 3)):
        whole = level(count, streams, rate_cap_rps=12.0)
        parts = list(deal(whole, processes))
        assert sorted(one.id for part in parts for one in part.prompts) == sorted(one.id for one in whole.prompts)
        assert sum(part.part_streams_count for part in parts) == streams
        assert {part.concurrency for part in parts} == {streams}
        caps = [part.workload.rate_cap_rps for part in parts if part.part_streams_count]
        assert sum(filter(None, caps)) == pytest.approx(12.0)


def test_the_moments_of_an_open_loop_stay_with_their_conversations() -> None:
    whole = msgspec.structs.replace(level(5, 0), schedule_s=(0.0, 1.0, 2.0, 3.0, 4.0))
    first, second = deal(whole, 2)
    assert [one.id for one in first.prompts] == ["s0", "s2", "s4"]
    assert (first.schedule_s, second.schedule_s) == ((0.0, 2.0, 4.0), (1.0, 3.0))


def test_records_are_merged_exactly_on_one_clock() -> None:
    zero_s = clock.now_s()
    records: list[RequestRecord] = []

    async def drive(url: str) -> tuple[list[Sent], int]:
        group = shards(url, records.append, zero_s)
        after = await group.drive(level(12, 4), 2, 7)
        after = await group.drive(msgspec.structs.replace(level(3, 0), schedule_s=(0.0, 0.05, 0.1)), 2, after)
        await group.close()
        async with open_client(url) as client:
            return await take_dump(client), after

    with truth_server() as url:
        dump, after = asyncio.run(drive(url))
    assert [one.error for one in records] == [None] * 15
    indices = [one.request_index for one in records]
    assert len(set(indices)) == 15
    assert min(indices) == 7
    assert after > max(indices)
    sent = {one.name: [two for two in dump if two.name == one.name] for one in dump}
    for record in records:
        true = min(sent[record.prompt_id], key=lambda one: abs(one.received_s - record.sent_s - zero_s))
        assert record.chunk_tokens == tuple(true.chunk_tokens)
        late_s = [at_s + zero_s - true_s for at_s, true_s in zip(record.chunk_s, true.sent_s, strict=True)]
        assert all(0 <= one < TOLERANCE_S for one in late_s)
    assert {one.concurrency for one in records} == {4, 0}
    begun_s = sorted(one.due_s for one in records[:12])[:4]
    assert begun_s[-1] - begun_s[0] < TOLERANCE_S, "both processes begin at one moment"


def test_a_stopped_load_tells_what_was_in_flight_and_leaves_no_process() -> None:
    records: list[RequestRecord] = []
    endless = [Script(name=f"s{index}", chunk_count=2000) for index in range(4)]
    prompts = tuple(Prompt(id=one.name, category="c", turns=(msgspec.json.encode(one).decode(),)) for one in endless)

    async def drive(url: str) -> None:
        group = shards(url, records.append)
        driving = asyncio.create_task(group.drive(Level(workload=Workload(name="w"), concurrency=4, prompts=prompts), 2, 0))
        await asyncio.sleep(2.0)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        await group.close()

    with truth_server() as url:
        asyncio.run(drive(url))
    assert [one.error for one in records] == ["stopped before the answer ended"] * 4
    assert all(len(one.chunk_s) > 3 for one in records)
    assert not [one for one in psutil.Process().children() if "specbench.execution.shard" in " ".join(one.cmdline())]


def test_a_client_process_that_dies_ends_the_level_with_its_reason() -> None:
    records: list[RequestRecord] = []

    async def drive(url: str) -> None:
        group = shards(url, records.append)
        driving = asyncio.create_task(group.drive(level(400, 4), 2, 0))
        await asyncio.sleep(1.5)
        victims = [one for one in psutil.Process().children() if "specbench.execution.shard" in " ".join(one.cmdline())]
        os.kill(victims[0].pid, signal.SIGKILL)
        with pytest.raises(LaunchError, match="a client process ended in the middle of the load"):
            await driving
        await group.close()

    with truth_server() as url:
        asyncio.run(drive(url))
    lost = [one for one in records if one.error == "its client process died before it told of it"]
    assert len(lost) > 100
    assert len({one.request_index for one in records}) == len(records)


def test_a_hung_server_is_noticed_through_client_processes() -> None:
    """It accepts and never answers: each process tells of no progress, and what was in flight is recorded."""
    records: list[RequestRecord] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass
        writer.close()

    async def scene() -> str:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        group = shards(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", records.append, clock.now_s())

        async def drive() -> None:
            await group.drive(level(4, 4), 2, 0)

        stall = Stall(3.0)
        stall.watch(group.moved)
        end = await guarded(drive(), None, stall)
        await group.close()
        server.close()
        await server.wait_closed()
        return end

    assert asyncio.run(scene()) == "hung"
    assert [one.error for one in records] == ["stopped before the answer ended"] * 4


def selftest(cpu_per_chunk_s: float) -> SelfTest:
    paced = PacedLoad(
        name="p",
        chunk_count=10,
        failed_count=0,
        cpu_per_chunk_s=cpu_per_chunk_s,
        late_p50_s=0,
        late_p99_s=0,
        ttft_error_p99_s=0,
    )
    return SelfTest(
        at_utc="",
        host="",
        specbench_version="",
        streams_count=1,
        paced=(paced,),
        saturated_rps=1,
        saturated_core_ratio=1,
        clock="kernel",
    )


def test_the_limit_is_half_a_core_of_the_last_self_test() -> None:
    assert one_process_rps(selftest(25e-6)) == pytest.approx(20_000)
    assert one_process_rps(None) == scale.USUAL_CHUNKS_RPS


def test_how_many_processes_a_level_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert [processes_count(load, 15_000, 512) for load in (0, 15_000, 15_001, 46_000, 1e9)] == [1, 1, 2, 4, 7]
    assert processes_count(1e9, 15_000, 3) == 3
    assert processes_count(1e9, 15_000, None) == 7
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert processes_count(1e9, 15_000, None) == 1
