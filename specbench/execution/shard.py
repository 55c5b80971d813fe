"""A client process of its own: `python -m specbench.execution.shard` drives its part of each level.

It reads `Begin` and then for each level a `Part` and a `Go`, a JSON line each, from standard input, and writes `Ready`
between the two, then a line a record, `Recorded`, and at last `Ended`. It ends with its input; what is in flight then is
recorded as stopped. All times are those of `specbench.clock.now_s`, which processes of one machine share.
"""

import asyncio
import contextlib
import sys
from typing import Final

import msgspec
from msgspec import Struct

from specbench import engines
from specbench.execution.client import open_client
from specbench.execution.load import Level, Load, Target
from specbench.execution.stall import Pace
from specbench.records import RequestRecord
from specbench.units import Second

LINE_BYTES: Final = 1 << 28
"""The longest line: all prompts of a level."""


class Begin(Struct, frozen=True, kw_only=True, tag=True):
    """Whom the load is for."""

    engine: str
    base_url: str
    served_model: str
    version: str | None
    zero_s: Second
    api_key: str | None = None


class Part(Struct, frozen=True, kw_only=True, tag=True):
    """What to drive. Its requests have the indices `first_index`, `first_index + shards_count`, …"""

    level: Level
    first_index: int
    shards_count: int


class Go(Struct, frozen=True, kw_only=True, tag=True):
    """When all processes begin."""

    begin_s: Second


class Ready(Struct, frozen=True, kw_only=True, tag=True):
    """The part's requests are encoded and its connections are open."""


class Recorded(Struct, frozen=True, kw_only=True, tag=True):
    """A request has ended."""

    record: RequestRecord


class Moving(Struct, frozen=True, kw_only=True, tag=True):
    """Something came from the server since the last word, or nothing is awaited."""


class Ended(Struct, frozen=True, kw_only=True, tag=True):
    """A part has ended; what it raised, if anything."""

    error: str | None = None


Told = Ready | Recorded | Moving | Ended
MOVING_EVERY_S: Final = 1.0
_decode = msgspec.json.Decoder(Begin | Part | Go).decode


def tell(told: Told) -> None:
    """A line to the parent."""
    sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    sys.stdout.buffer.flush()


async def serve() -> None:
    """Until the input ends."""
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    begin = _decode(await reader.readline())
    assert isinstance(begin, Begin)
    async with open_client(begin.base_url, api_key=begin.api_key) as client:
        target = Target(
            engine=engines.get(begin.engine),
            client=client,
            served_model=begin.served_model,
            version=begin.version,
            zero_s=begin.zero_s,
        )
        while line := await reader.readline():
            part = _decode(line)
            assert isinstance(part, Part)
            load = Load(target, lambda record: tell(Recorded(record=record)), part.shards_count)
            load.next_index = part.first_index
            if not await _drive(load, part.level, reader):
                return


async def _drive(load: Load, level: Level, reader: asyncio.StreamReader) -> bool:
    """False when the input ended meanwhile: the parent is gone, or wants no more."""

    async def begin() -> Second:
        tell(Ready())
        line = await reader.readline()
        go = _decode(line) if line else None
        if not isinstance(go, Go):
            raise asyncio.CancelledError
        return go.begin_s

    driving = asyncio.create_task(load.drive(level, begin))
    watching = asyncio.create_task(_until_end(reader))
    telling = asyncio.create_task(_tell_moves(load.pace))
    await asyncio.wait({driving, watching}, return_when=asyncio.FIRST_COMPLETED)
    stopped = not driving.done()
    for task in (driving, watching, telling):
        task.cancel()
    done = await asyncio.gather(driving, watching, telling, return_exceptions=True)
    failure = done[0] if isinstance(done[0], Exception) else None
    tell(Ended(error=f"{type(failure).__name__}: {failure}" if failure else None))
    return not stopped


async def _tell_moves(pace: Pace) -> None:
    while True:
        await asyncio.sleep(MOVING_EVERY_S)
        if pace.moved():
            tell(Moving())


async def _until_end(reader: asyncio.StreamReader) -> None:
    """But for `Go`, no line comes while a part is driven: what can come is the end."""
    while not reader.at_eof():  # noqa: ASYNC110 (the reader has no event for it)
        await asyncio.sleep(0.05)


def main() -> None:
    """The process."""
    from specbench.execution.loop import loop_factory

    with asyncio.Runner(loop_factory=loop_factory()) as runner, contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        runner.run(serve())


if __name__ == "__main__":
    main()
