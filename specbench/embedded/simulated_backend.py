"""The simulated engine behind the server's front: no model, but a batch, a queue, and steps that end when the cost model
says. SIMULATED: its tokens are words drawn at random, its times are computed."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final, Literal

from specbench import clock
from specbench.embedded.cost_model import CostModel
from specbench.embedded.faults import Faults
from specbench.embedded.interface import (
    EngineFacts,
    EngineFailed,
    EngineLog,
    EngineStep,
    GenerateRequest,
    RequestRefused,
    StepOutput,
)
from specbench.embedded.simulated_request import PrefixCache, Request
from specbench.embedded.simulated_text import rendered, token_count
from specbench.units import Ratio, Second

Phase = Literal["weights", "kv_cache", "graph_capture", "drafter"]
PHASES: Final[tuple[tuple[Phase, Ratio], ...]] = (
    ("weights", 0.5),
    ("kv_cache", 0.1),
    ("graph_capture", 0.3),
    ("drafter", 0.1),
)
"""Shares of the loading time."""


class SimulatedBackend:
    """One loop for the whole batch. Steps end on a schedule: a late wake-up is not added to the steps after it."""

    def __init__(
        self,
        facts: EngineFacts,
        model: CostModel,
        *,
        seed: int = 0,
        eos_ratio: Ratio = 0.0,
        load_s: Second = 0.2,
        graph_max_batch_size: int | None = None,
        prefix_cache: bool = True,
        faults: Faults | None = None,
    ) -> None:
        self._facts = facts
        self._model = model
        self._seed = seed
        self._eos_ratio = eos_ratio
        self._load_s = load_s
        self._faults = faults or Faults()
        self._graph_max_batch_size = graph_max_batch_size
        self._cache = PrefixCache() if prefix_cache else None
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._failure: EngineFailed | None = None
        self._loop: asyncio.Task[None] | None = None

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    @property
    def running_requests(self) -> int:
        return len(self._running)

    @property
    def queue_requests(self) -> int:
        return len(self._waiting)

    def prompt_tokens(self, request: GenerateRequest) -> int | None:
        return token_count(rendered(request))

    # -- life ------------------------------------------------------------------------------------------------

    async def start(self, log: EngineLog) -> None:
        """Takes the loading time, phase by phase."""
        self._log = log
        self._wake = asyncio.Event()
        self._failed: asyncio.Future[EngineFailed] = asyncio.get_running_loop().create_future()
        for name, share in PHASES:
            if (name != "graph_capture" or self._facts.graphs) and (name != "drafter" or self._facts.has_drafter):
                await self._load(name, self._load_s * share)
        self._loop = asyncio.create_task(self._run())
        self._loop.add_done_callback(self._ended)

    async def _load(self, name: Phase, seconds: Second) -> None:
        began_s = clock.now_s()
        self._log.phase(name, done=False)
        await self._faults.while_loading(name)
        await asyncio.sleep(seconds)
        self._log.phase(name, done=True, elapsed_s=clock.now_s() - began_s)

    async def failed(self) -> EngineFailed:
        """Only an error of the simulation itself ends it unasked."""
        return await asyncio.shield(self._failed)

    async def stop(self) -> None:
        """What runs or waits ends with `abort`."""
        self._failure = self._failure or EngineFailed("the server is stopping")
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.wait({self._loop})
        for request in (*self._running, *self._waiting):
            request.outputs.put_nowait(
                StepOutput(text="", new_tokens=0, prompt_tokens=request.prompt_tokens, finish_reason="abort")
            )
        self._running, self._waiting = [], deque()

    def _ended(self, loop: asyncio.Task[None]) -> None:
        if loop.cancelled() or (error := loop.exception()) is None:
            return
        self._failure = EngineFailed(f"the simulation failed: {error!r}")
        self._failed.set_result(self._failure)
        for request in (*self._running, *self._waiting):
            request.outputs.put_nowait(self._failure)

    async def flush(self) -> None:
        if self._cache is not None:
            self._cache.clear()

    # -- requests --------------------------------------------------------------------------------------------

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[StepOutput, None]:
        """One output a step."""
        if self._failure is not None:
            raise self._failure
        one = Request(request, self._seed, self._model, self._eos_ratio)
        self._demand_room(one.prompt_tokens, request.max_tokens)
        self._waiting.append(one)
        self._wake.set()
        try:
            while True:
                output = await one.outputs.get()
                if isinstance(output, EngineFailed):
                    raise output
                yield output
                if output.finish_reason is not None:
                    return
        finally:
            self._drop(one)

    def _demand_room(self, prompt_tokens: int, max_tokens: int) -> None:
        limit_tokens = min(self._facts.context_length, self._facts.capacity_tokens)
        if prompt_tokens + max_tokens > limit_tokens:
            raise RequestRefused(
                f"Requested token count exceeds the model's maximum context length of {limit_tokens} tokens. You requested "
                f"a total of {prompt_tokens + max_tokens} tokens: {prompt_tokens} tokens from the input messages and "
                f"{max_tokens} tokens for the completion."
            )

    def _drop(self, request: Request) -> None:
        request.gone = True
        if request in self._running:
            self._running.remove(request)
        elif request in self._waiting:
            self._waiting.remove(request)

    # -- the loop --------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        due_s = clock.now_s()
        while True:
            if not self._running and not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                due_s = clock.now_s()
            if joining := self._admitted():
                due_s += self._model.prefill_s(sum(one.prompt_tokens - one.cached_tokens for one in joining))
                await asyncio.sleep(max(0.0, due_s - clock.now_s()))
                self._prefill(joining)
            elif batch := tuple(self._running):
                graph = self._replays(len(batch))
                due_s += self._model.decode_s(len(batch), graph=graph)
                await asyncio.sleep(max(0.0, due_s - clock.now_s()))
                self._decode(batch, graph)

    def _admitted(self) -> list[Request]:
        """From the queue into the batch, in order, as far as places and KV cache go."""
        joining: list[Request] = []
        free_tokens = self._facts.capacity_tokens - sum(one.whole_tokens for one in self._running)
        while self._waiting and len(self._running) < self._facts.max_running_requests:
            one = self._waiting[0]
            if one.whole_tokens > free_tokens:
                break
            free_tokens -= one.whole_tokens
            if self._cache is not None:
                one.cached_tokens = self._cache.cached_tokens(one.prompt)
            joining.append(one)
            self._running.append(self._waiting.popleft())
        return joining

    def _replays(self, batch: int) -> bool:
        limit = self._graph_max_batch_size
        return self._facts.graphs and (limit is None or batch <= limit)

    def _prefill(self, joining: Sequence[Request]) -> None:
        beside = len(self._running) - sum(not one.gone for one in joining)
        self._hand_out([(one, one.first()) for one in joining if not one.gone])
        self._log.step(
            EngineStep(
                kind="prefill",
                running_requests=beside,
                queue_requests=len(self._waiting),
                new_requests=len(joining),
                new_tokens=sum(one.prompt_tokens - one.cached_tokens for one in joining),
                cached_tokens=sum(one.cached_tokens for one in joining),
                used_tokens=self._used_tokens(),
            )
        )

    def _decode(self, batch: Sequence[Request], graph: bool) -> None:
        outputs = [(one, one.step()) for one in batch if not one.gone]
        self._hand_out(outputs)
        self._log.step(
            EngineStep(
                kind="decode",
                running_requests=len(batch),
                queue_requests=len(self._waiting),
                new_tokens=sum(output.new_tokens for _, output in outputs),
                verify_count=sum(output.verify for _, output in outputs),
                correct_tokens=sum(output.correct_tokens or 0 for _, output in outputs),
                used_tokens=self._used_tokens(),
                graph=graph,
            )
        )

    def _hand_out(self, outputs: Sequence[tuple[Request, StepOutput]]) -> None:
        for one, output in outputs:
            one.outputs.put_nowait(output)
            if self._cache is not None and (one.position == 1 or output.finish_reason is not None):
                self._cache.keep(one.prompt if output.finish_reason is None else one.prompt + one.answer)
        if any(output.finish_reason is not None for _, output in outputs):
            self._running = [one for one in self._running if one.position < one.end_tokens]

    def _used_tokens(self) -> int:
        return sum(one.prompt_tokens + one.position for one in self._running)
