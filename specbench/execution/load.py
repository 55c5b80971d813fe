"""The closed loop: as many streams as the level says, each sending its next request when its last has ended."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import httpx
from asyncio_throttle.throttler import Throttler
from msgspec import Struct, structs

from specbench import clock
from specbench.datasets import Prompt
from specbench.dialects import Message
from specbench.engines import Engine
from specbench.execution.answers import record_of
from specbench.execution.client import exchange
from specbench.records import RequestRecord, TokenSource
from specbench.suite import Workload
from specbench.units import Second

PAUSE_AFTER_FAILURE_S = 0.1
"""A dead server must not be asked a thousand times a second."""


class Level(Struct, frozen=True, kw_only=True):
    """One concurrency of one workload, with its conversations."""

    workload: Workload
    concurrency: int
    prompts: tuple[Prompt, ...]
    warmup: bool = False

    @property
    def request_count(self) -> int:
        """A conversation of n turns is n requests."""
        return sum(len(prompt.turns) for prompt in self.prompts)


class Target(Struct, frozen=True, kw_only=True):
    """Whom the load is for."""

    engine: Engine
    client: httpx.AsyncClient
    served_model: str
    version: str | None
    zero_s: Second
    """The clock's reading when the trial began."""


def take_requests(prompts: Iterable[Prompt], request_count: int) -> tuple[Prompt, ...]:
    """Conversations in order until they make up so many requests; the last one may lose turns."""
    taken: list[Prompt] = []
    left_count = request_count
    for prompt in prompts:
        if left_count <= 0:
            break
        taken.append(structs.replace(prompt, turns=prompt.turns[:left_count]))
        left_count -= len(prompt.turns)
    return tuple(taken)


class Load:
    """Drives levels at one server. `sink` gets each record as its request ends."""

    def __init__(self, target: Target, sink: Callable[[RequestRecord], None]) -> None:
        self._target = target
        self._sink = sink
        self._next_index = 0

    async def drive(self, level: Level) -> None:
        """Until every conversation has ended. When cancelled, requests in flight are recorded as stopped."""
        queue = deque(level.prompts)
        cap_rps = level.workload.rate_cap_rps
        throttler = Throttler(rate_limit=1, period=1 / cap_rps) if cap_rps else None
        begun_s = clock.now_s()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(level.concurrency, len(queue))):
                    group.create_task(self._stream(level, queue, throttler, begun_s))
        except ExceptionGroup as trouble:
            raise trouble.exceptions[0] from None

    async def _stream(self, level: Level, queue: deque[Prompt], throttler: Throttler | None, free_s: Second) -> None:
        while queue:
            free_s = await self._converse(level, queue.popleft(), throttler, free_s)

    async def _converse(self, level: Level, prompt: Prompt, throttler: Throttler | None, free_s: Second) -> Second:
        """All turns of one conversation. Returns when the stream is free again."""
        messages = [Message(role="system", content=prompt.system)] if prompt.system else []
        for turn_index, text in enumerate(prompt.turns):
            if throttler:
                await throttler.acquire()  # type: ignore[no-untyped-call]
                free_s = clock.now_s()  # the cap, not the server, made it wait: due is when the cap lets it go
            messages.append(Message(role="user", content=text))
            record = await self._send(level, prompt, turn_index, messages, free_s)
            if record.error:
                self._give_up(record, len(prompt.turns))
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
                return clock.now_s()
            free_s = record.done_s + self._target.zero_s
            messages.append(Message(role="assistant", content=record.output_text))
        return free_s

    async def _send(
        self, level: Level, prompt: Prompt, turn_index: int, messages: Sequence[Message], due_s: Second
    ) -> RequestRecord:
        target = self._target
        blank = self._blank(level, prompt, turn_index, due_s - target.zero_s)
        request = target.engine.request(messages, level.workload, target.served_model, target.version)
        seen = await exchange(target.client, request, level.workload.timeout_s)
        reader = target.engine.event_reader(level.workload)
        stated_source: TokenSource | None = "meta_info" if level.workload.api == "generate" else None
        record = record_of(blank, seen, reader, stated_source, target.zero_s)
        self._sink(record)
        if seen.cancelled:
            raise asyncio.CancelledError
        return record

    def _blank(self, level: Level, prompt: Prompt, turn_index: int, due_s: Second) -> RequestRecord:
        """What is known before it is sent; its times are put right afterwards."""
        index, self._next_index = self._next_index, self._next_index + 1
        return RequestRecord(
            request_index=index,
            prompt_id=prompt.id,
            category=prompt.category,
            workload=level.workload.name,
            concurrency=level.concurrency,
            warmup=level.warmup,
            turn_index=turn_index,
            due_s=due_s,
            sent_s=due_s,
            done_s=due_s,
        )

    def _give_up(self, failed: RequestRecord, turn_count: int) -> None:
        """The turns after a failed one have nothing to build on: recorded as failed, never sent."""
        for turn_index in range(failed.turn_index + 1, turn_count):
            index, self._next_index = self._next_index, self._next_index + 1
            self._sink(
                RequestRecord(
                    request_index=index,
                    prompt_id=failed.prompt_id,
                    category=failed.category,
                    workload=failed.workload,
                    concurrency=failed.concurrency,
                    warmup=failed.warmup,
                    turn_index=turn_index,
                    due_s=failed.done_s,
                    sent_s=failed.done_s,
                    done_s=failed.done_s,
                    error=f"not sent: turn {failed.turn_index} of this conversation failed",
                )
            )
