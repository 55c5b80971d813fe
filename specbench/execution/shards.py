"""The load of a level, dealt to several client processes; their records come back as one stream, on one clock."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from specbench import clock
from specbench.errors import LaunchError
from specbench.execution.load import Level
from specbench.execution.shard import LINE_BYTES, Begin, Ended, Go, Part, Ready, Recorded, Told
from specbench.records import RequestRecord
from specbench.units import Second

COMMAND: Final = (sys.executable, "-P", "-m", "specbench.execution.shard")
LEAD_S: Final = 0.05
"""From the word to their common beginning."""
STOP_S: Final = 5.0
_decode = msgspec.json.Decoder(Told).decode


def deal(level: Level, shards_count: int) -> Iterator[Level]:
    """The parts of a level: streams in turn, each stream's share of the conversations with it; in an open loop the
    conversations in turn, each at its own moment. Every conversation is in one part, in the level's order."""
    streams = level.concurrency or shards_count
    slots = [place % shards_count for place in range(streams)]
    for shard_index in range(shards_count):
        mine = [place for place in range(len(level.prompts)) if slots[place % streams] == shard_index]
        part_streams = slots.count(shard_index)
        cap_rps = level.workload.rate_cap_rps
        yield structs.replace(
            level,
            workload=structs.replace(level.workload, rate_cap_rps=cap_rps and cap_rps * part_streams / streams),
            part_streams_count=part_streams if level.concurrency else 0,
            prompts=tuple(level.prompts[place] for place in mine),
            schedule_s=tuple(level.schedule_s[place] for place in mine) if level.schedule_s else (),
        )


class Shards:
    """Client processes, while a launch lasts. Driven as `Load` is."""

    def __init__(self, begin: Begin, sink: Callable[[RequestRecord], None]) -> None:
        self._begin = begin
        self._sink = sink
        self._processes: list[asyncio.subprocess.Process] = []
        self._next_index = 0
        self._owed: dict[asyncio.subprocess.Process, dict[tuple[str, int], RequestRecord]] = {}
        """By prompt and turn, what each process has not told of yet, as it is recorded should the process die."""
        self._driving = self._moved = False

    async def drive(self, level: Level, shards_count: int, first_index: int) -> int:
        """Until every part has ended; the index that the next request may have. Raises LaunchError `client_died`."""
        while len(self._processes) < shards_count:
            self._processes.append(await asyncio.create_subprocess_exec(*COMMAND, **_PIPES))
            _send(self._processes[-1], self._begin)
        self._next_index = first_index
        self._driving = self._moved = True
        running = self._processes[:shards_count]
        for place, (process, part) in enumerate(zip(running, deal(level, shards_count), strict=True)):
            self._owed[process] = _owed(part, first_index + place, shards_count, clock.now_s() - self._begin.zero_s)
            _send(process, Part(level=part, first_index=first_index + place, shards_count=shards_count))
        try:
            await self._all(running, Ready)
            begin_s = clock.now_s() + LEAD_S
            for process in running:
                _send(process, Go(begin_s=begin_s))
            await self._all(running, Ended)
        except ExceptionGroup as trouble:
            raise trouble.exceptions[0] from None
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            self._driving = False
        return self._next_index

    def moved(self) -> bool:
        """Whether any of them had progress since the last look, or none has anything to do."""
        moved, self._moved = self._moved, False
        return moved or not self._driving

    async def close(self) -> None:
        """Ends the processes; records of requests that were in flight still come."""
        processes, self._processes = self._processes, []
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        await asyncio.gather(*map(self._ended, processes))

    async def _ended(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(TimeoutError, LaunchError):
            async with asyncio.timeout(STOP_S):
                await self._collect(process, Ended)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def _all(self, running: Sequence[asyncio.subprocess.Process], awaited: type[Ready | Ended]) -> None:
        async with asyncio.TaskGroup() as group:
            for process in running:
                group.create_task(self._collect(process, awaited))

    async def _collect(self, process: asyncio.subprocess.Process, awaited: type[Ready | Ended]) -> None:
        """Keeps records until the awaited word."""
        assert process.stdout is not None
        while line := await process.stdout.readline():
            told = _decode(line)
            self._moved = True
            if isinstance(told, Ended) and told.error:
                raise LaunchError("client_died", f"a client process failed: {told.error}")
            if isinstance(told, awaited):
                return
            if not isinstance(told, Recorded):
                continue
            self._next_index = max(self._next_index, told.record.request_index + 1)
            self._owed[process].pop((told.record.prompt_id, told.record.turn_index), None)
            self._sink(told.record)
        for lost in self._owed.pop(process, {}).values():
            self._sink(lost)
        code = await process.wait()
        raise LaunchError(
            "client_died",
            f"a client process ended in the middle of the load (exit code {code}; what it printed stands above)",
        )


def _owed(part: Level, first_index: int, step: int, now_s: Second) -> dict[tuple[str, int], RequestRecord]:
    pairs = [(prompt, turn) for prompt in part.prompts for turn in range(len(prompt.turns))]
    return {
        (prompt.id, turn): RequestRecord(
            request_index=first_index + place * step,
            prompt_id=prompt.id,
            category=prompt.category,
            workload=part.workload.name,
            concurrency=part.concurrency,
            turn_index=turn,
            due_s=now_s,
            sent_s=now_s,
            done_s=now_s,
            error="its client process died before it told of it",
        )
        for place, (prompt, turn) in enumerate(pairs)
    }


_PIPES: Final[dict[str, Any]] = {
    "stdin": asyncio.subprocess.PIPE,
    "stdout": asyncio.subprocess.PIPE,
    "limit": LINE_BYTES,
    "start_new_session": True,
}
"""A session of their own: Ctrl-C reaches the parent, which ends them in order."""


def _send(process: asyncio.subprocess.Process, line: Begin | Part | Go) -> None:
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(line) + b"\n")
