"""Closed loop: as many streams as the level says, each sending its next request when its last has ended. Open loop:
a request whenever one is due, whatever became of those before."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence

from asyncio_throttle.throttler import Throttler
from msgspec import Struct, structs

from specbench import clock
from specbench.datasets import Prompt
from specbench.dialects import Message
from specbench.dialects.sglang_http import GenerateReader
from specbench.engines import Engine
from specbench.execution.answers import Decoding, record_of
from specbench.execution.client import Exchange, LoadClient, Outgoing, exchange, prepare
from specbench.execution.stall import Pace
from specbench.records import RequestRecord, TokenSource
from specbench.suite import Workload
from specbench.units import Second

PAUSE_AFTER_FAILURE_S = 0.1
"""A dead server must not be asked a thousand times a second."""
EVENTS_AT_ONCE = 32
"""Decoded before others get a turn: about 0.3 ms."""
LEAD_S = 0.05
"""Between the start of an open loop and its first moment."""
OPEN_LOOP_CONNECTIONS = 64
"""Opened ahead of an open loop; further ones as they are needed."""


class Level(Struct, frozen=True, kw_only=True):
    """One concurrency of one workload, with its conversations."""

    workload: Workload
    concurrency: int
    prompts: tuple[Prompt, ...]
    warmup: bool = False
    schedule_s: tuple[Second, ...] = ()
    """Open loop: when each conversation is due, from the start of the level. Empty: closed loop."""
    part_streams_count: int = 0
    """Of a level that is dealt to several client processes: this one's streams. 0: all of `concurrency`."""

    @property
    def title(self) -> str:
        """`chat at concurrency 8`."""
        where = f"at concurrency {self.concurrency}" if self.concurrency else "in an open loop"
        return f"{self.workload.name} {where}"

    @property
    def request_count(self) -> int:
        """A conversation of n turns is n requests."""
        return sum(len(prompt.turns) for prompt in self.prompts)


class Target(Struct, frozen=True, kw_only=True):
    """Whom the load is for."""

    engine: Engine
    client: LoadClient
    served_model: str
    version: str | None
    zero_s: Second
    """The clock's reading when the trial began."""


def take_requests(prompts: Iterable[Prompt], request_count: int, fewest_count: int = 0) -> tuple[Prompt, ...]:
    """Conversations in order until they make up so many requests; the last one may lose turns.

    Never fewer than `fewest_count` conversations, so that each stream has one: those beyond the count have one turn.
    """
    taken: list[Prompt] = []
    left_count = request_count
    for prompt in prompts:
        if left_count <= 0 and len(taken) >= fewest_count:
            break
        taken.append(structs.replace(prompt, turns=prompt.turns[: max(1, left_count)]))
        left_count -= len(prompt.turns)
    return tuple(taken)


async def _until(moment_s: Second) -> None:
    while (left_s := moment_s - clock.now_s()) > 0:  # noqa: ASYNC110 (a moment, not an event)
        await asyncio.sleep(left_s)


class Conversation(Struct, kw_only=True):
    """A prompt on its way, with its next request encoded."""

    prompt: Prompt
    messages: list[Message]
    request: Outgoing


class Pending(Struct, eq=False, kw_only=True):
    """An exchange that has ended and is not yet a record."""

    blank: RequestRecord
    seen: Exchange
    decoding: Decoding
    stated_source: TokenSource | None


class Load:
    """Drives levels at one server. `sink` gets each record as its request ends."""

    def __init__(self, target: Target, sink: Callable[[RequestRecord], None], index_step: int = 1) -> None:
        self._target = target
        self._sink = sink
        self._index_step = index_step
        self._pending: set[Pending] = set()
        self.pace = Pace(target.client.reads_count)
        self.next_index = 0
        """Of the next request; several client processes count in steps of their number."""

    async def drive(self, level: Level, begin: Callable[[], Awaitable[Second]] | None = None) -> None:
        """Until every conversation has ended. When cancelled, requests in flight are recorded as stopped.

        `begin`, asked when all is prepared, tells the moment to begin at; at once where it is left out.
        """
        queue = deque(self._conversation(level, prompt) for prompt in level.prompts)
        streams_count = level.part_streams_count or level.concurrency
        self._target.client.allow(min(len(queue), streams_count or len(queue)), demanded=bool(streams_count))
        await self._target.client.preopen(min(len(queue), streams_count or OPEN_LOOP_CONNECTIONS))
        begin_s = await begin() if begin else clock.now_s()
        await _until(begin_s)
        try:
            async with asyncio.TaskGroup() as group:
                if level.schedule_s:
                    await self._open_loop(group, level, queue, begin_s + LEAD_S)
                else:
                    self._closed_loop(group, level, queue, streams_count, begin_s)
        except ExceptionGroup as trouble:
            raise trouble.exceptions[0] from None
        finally:
            for pending in list(self._pending):
                self._keep(pending)

    def _closed_loop(
        self, group: asyncio.TaskGroup, level: Level, queue: deque[Conversation], streams_count: int, begin_s: Second
    ) -> None:
        cap_rps = level.workload.rate_cap_rps
        throttler = Throttler(rate_limit=1, period=1 / cap_rps) if cap_rps else None
        for _ in range(min(streams_count, len(queue))):
            group.create_task(self._stream(group, level, queue, throttler, begin_s))

    async def _open_loop(self, group: asyncio.TaskGroup, level: Level, queue: deque[Conversation], begun_s: Second) -> None:
        """Each moment is counted from the start, so that a late one does not push the next."""
        for conversation, offset_s in zip(queue, level.schedule_s, strict=False):
            await _until(begun_s + offset_s)
            group.create_task(self._converse(group, level, conversation, None, begun_s + offset_s))

    async def _stream(
        self,
        group: asyncio.TaskGroup,
        level: Level,
        queue: deque[Conversation],
        throttler: Throttler | None,
        free_s: Second,
    ) -> None:
        while queue:
            free_s = await self._converse(group, level, queue.popleft(), throttler, free_s)

    async def _converse(
        self,
        group: asyncio.TaskGroup,
        level: Level,
        conversation: Conversation,
        throttler: Throttler | None,
        free_s: Second,
    ) -> Second:
        """All turns of one conversation. Returns when the stream is free again; the last answer is decoded after that."""
        turns = conversation.prompt.turns
        for turn_index in range(len(turns)):
            if throttler:
                await throttler.acquire()  # type: ignore[no-untyped-call]
                free_s = clock.now_s()  # the cap, not the server, made it wait: due is when the cap lets it go
            pending = await self._exchange(level, conversation, turn_index, free_s)
            if turn_index == len(turns) - 1 and pending.seen.error is None:
                group.create_task(self._finish(pending))
                break
            record = await self._finish(pending)
            if record.error:
                self._give_up(record, len(turns))
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
                return clock.now_s()
            self._add_turn(level, conversation, record.output_text, turns[turn_index + 1])
            free_s = clock.now_s()
        return clock.now_s()

    def _conversation(self, level: Level, prompt: Prompt) -> Conversation:
        messages = [Message(role="system", content=prompt.system)] if prompt.system else []
        messages.append(Message(role="user", content=prompt.turns[0]))
        return Conversation(prompt=prompt, messages=messages, request=self._prepared(level, messages))

    def _add_turn(self, level: Level, conversation: Conversation, answer: str, question: str) -> None:
        conversation.messages += [Message(role="assistant", content=answer), Message(role="user", content=question)]
        conversation.request = self._prepared(level, conversation.messages)

    def _prepared(self, level: Level, messages: Sequence[Message]) -> Outgoing:
        target, workload = self._target, level.workload
        request = target.engine.request(messages, workload, target.served_model, target.version)
        return prepare(target.client, request, workload.timeout_s)

    async def _exchange(self, level: Level, conversation: Conversation, turn_index: int, due_s: Second) -> Pending:
        """Sends and receives; its record is owed from then on, whatever happens."""
        blank = self._blank(level, conversation.prompt, turn_index, due_s - self._target.zero_s)
        self.pace.begin()
        seen = await exchange(self._target.client, conversation.request)
        self.pace.end(given_up=seen.timed_out)
        reader = self._target.engine.event_reader(level.workload)
        stated_source: TokenSource | None = "meta_info" if isinstance(reader, GenerateReader) else None
        pending = Pending(blank=blank, seen=seen, decoding=Decoding(seen, reader), stated_source=stated_source)
        self._pending.add(pending)
        if seen.cancelled:
            raise asyncio.CancelledError
        return pending

    async def _finish(self, pending: Pending) -> RequestRecord:
        while pending.decoding.advance(EVENTS_AT_ONCE):  # noqa: ASYNC110 (others get a turn)
            await asyncio.sleep(0)
        return self._keep(pending)

    def _keep(self, pending: Pending) -> RequestRecord:
        self._pending.discard(pending)
        answer = pending.decoding.whole()
        record = record_of(pending.blank, pending.seen, answer, pending.stated_source, self._target.zero_s)
        self._sink(record)
        return record

    def _blank(self, level: Level, prompt: Prompt, turn_index: int, due_s: Second) -> RequestRecord:
        """What is known before it is sent; its times are put right afterwards."""
        index, self.next_index = self.next_index, self.next_index + self._index_step
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
            index, self.next_index = self.next_index, self.next_index + self._index_step
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
