"""OpenVINO GenAI behind the server's front: requests go to the worker process, its steps come back as outputs."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress

import msgspec
from msgspec import Struct

from specbench.embedded.interface import (
    EngineFacts,
    EngineFailed,
    EngineLog,
    EngineStep,
    FinishReason,
    GenerateRequest,
    RequestRefused,
    StepOutput,
)
from specbench.embedded.openvino_wire import (
    Add,
    Cancel,
    Failed,
    Fatal,
    FromWorker,
    Loading,
    Output,
    Ready,
    Settings,
    Stepped,
)

WORKER_MODULE = "specbench.embedded.openvino_worker"
FAILED = "OpenVINO failed: "
"""Begins every cause; the engine's description looks for it in the log."""
LINE_LIMIT_BYTES = 1 << 24
GRACE_S = 5.0
FINISH_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


class _Waiting:
    """A request whose answer is under way."""

    def __init__(self) -> None:
        self.outputs: asyncio.Queue[Output | Exception] = asyncio.Queue()
        self.seen_tokens = 0
        """KV cache slots: prompt and answer so far; 0 before its first step."""


class OpenVinoBackend:
    """The pipeline in its worker. Implements `interface.Backend`."""

    def __init__(self, settings: Settings, facts: EngineFacts) -> None:
        self._settings = settings
        self._facts = facts
        self._waiting: dict[int, _Waiting] = {}
        self._last_id = 0
        self._failure: EngineFailed | None = None
        self._stopping = False
        self._worker: asyncio.subprocess.Process | None = None

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    @property
    def running_requests(self) -> int:
        return sum(one.seen_tokens > 0 for one in self._waiting.values())

    @property
    def queue_requests(self) -> int:
        """Those that join at the next step."""
        return len(self._waiting) - self.running_requests

    async def start(self, log: EngineLog) -> None:
        """Raises EngineFailed with the worker's own cause."""
        self._log = log
        self._failed: asyncio.Future[EngineFailed] = asyncio.get_running_loop().create_future()
        self._worker = await self._start_worker()
        self._send(self._settings)
        while not isinstance(message := await self._receive(), Ready):
            if message is None:
                raise await self._cause(self._worker)
            self._take(message)
        self._listening = asyncio.create_task(self._listen(self._worker))

    async def stop(self) -> None:
        """The worker ends when its pipe closes; if it is in the middle of something long, by SIGKILL."""
        if self._stopping:
            return
        self._stopping = True
        self._end_requests()
        if self._worker is None:
            return
        self._writer.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._worker.wait(), GRACE_S)
        if self._worker.returncode is None:
            self._worker.kill()
            await self._worker.wait()

    async def failed(self) -> EngineFailed:
        """Returns when the worker is gone without having been stopped, also while nothing runs."""
        return await asyncio.shield(self._failed)

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[StepOutput, None]:
        """One output a step. Closing it drops the request at the next step."""
        if self._failure is not None:
            raise self._failure
        self._last_id += 1
        request_id, waiting = self._last_id, _Waiting()
        self._waiting[request_id] = waiting
        self._send(_add(request_id, request))
        finished = False
        try:
            while not finished:
                output = await waiting.outputs.get()
                if isinstance(output, Exception):
                    finished = True
                    raise output
                finished = output.finish_reason is not None or output.error is not None
                yield _step_output(output)
        finally:
            self._waiting.pop(request_id, None)
            if not finished and self._failure is None and not self._stopping:
                self._send(Cancel(id=request_id))

    async def flush(self) -> None:
        """Prefix caching is off, so there is nothing to empty."""

    def prompt_tokens(self, request: GenerateRequest) -> int | None:
        """The tokenizer is in the worker."""
        return None

    async def _start_worker(self) -> asyncio.subprocess.Process:
        """In this process's group, with this process's stdout and stderr: what it writes lands in the log."""
        ours, theirs = socket.socketpair()
        with theirs:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-m", WORKER_MODULE, str(theirs.fileno()), pass_fds=(theirs.fileno(),)
            )
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=LINE_LIMIT_BYTES)
        return worker

    def _send(self, value: Struct) -> None:
        """Small against the socket's buffer, so there is no waiting for it to drain."""
        self._writer.write(msgspec.json.encode(value) + b"\n")

    async def _receive(self) -> Loading | Ready | Stepped | Failed | Fatal | None:
        """None when the worker is gone."""
        try:
            line = await self._reader.readline()
        except ConnectionError:
            line = b""
        return msgspec.json.decode(line, type=FromWorker) if line.endswith(b"\n") else None

    async def _listen(self, worker: asyncio.subprocess.Process) -> None:
        while (message := await self._receive()) is not None:
            self._take(message)
        if not self._stopping:
            failure = await self._cause(worker)
            self._failed.set_result(failure)
            for waiting in self._waiting.values():
                waiting.outputs.put_nowait(failure)

    def _end_requests(self) -> None:
        for request_id, waiting in self._waiting.items():
            waiting.outputs.put_nowait(
                Output(
                    id=request_id,
                    token_ids=(),
                    text="",
                    prompt_tokens=0,
                    first=False,
                    verified=False,
                    proposed_tokens=0,
                    error="the server is stopping",
                )
            )

    def _take(self, message: Loading | Ready | Stepped | Failed | Fatal) -> None:
        match message:
            case Loading(name="drafter" | "weights" as name):
                self._log.phase(name, done=message.done, elapsed_s=message.elapsed_s)
            case Stepped():
                self._take_step(message)
            case Failed() if message.id in self._waiting:
                self._waiting[message.id].outputs.put_nowait(RequestRefused(message.message))
            case Fatal():
                self._failure = EngineFailed(FAILED + message.message)

    def _take_step(self, step: Stepped) -> None:
        for output in step.outputs:
            waiting = self._waiting.get(output.id)
            if output.error:
                self._log.warning(f"{FAILED}{output.error}")
            if waiting is not None:
                waiting.seen_tokens = max(waiting.seen_tokens, output.prompt_tokens) + len(output.token_ids)
                waiting.outputs.put_nowait(output)
        for told in _batch_steps(step, self.queue_requests, sum(one.seen_tokens for one in self._waiting.values())):
            self._log.step(told)

    async def _cause(self, worker: asyncio.subprocess.Process) -> EngineFailed:
        """Its last words, or how it died."""
        code = await worker.wait()
        if self._failure is None:
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self._failure = EngineFailed(f"{FAILED}its process (pid {worker.pid}) ended by {how}")
        return self._failure


def _add(request_id: int, request: GenerateRequest) -> Add:
    messages = None
    if request.messages is not None:
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
    return Add(
        id=request_id,
        text=request.prompt_text,
        messages=messages,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        ignore_eos=request.ignore_eos,
        seed=request.seed,
    )


def _step_output(output: Output) -> StepOutput:
    """A verify step that gave n tokens accepted n - 1 drafts; the last is the target's own. A step that drafted nothing
    (prompt lookup without a match, the last token before the limit) is a verify step that accepted none."""
    return StepOutput(
        text=output.text,
        new_tokens=len(output.token_ids),
        prompt_tokens=output.prompt_tokens,
        verify=output.verified,
        correct_tokens=len(output.token_ids) - 1 if output.verified else 0,
        proposed_tokens=output.proposed_tokens,
        finish_reason="abort" if output.error else FINISH_REASONS.get(output.finish_reason or ""),
    )


def _batch_steps(step: Stepped, queue_requests: int, used_tokens: int) -> list[EngineStep]:
    """OpenVINO prefills new requests in the same step in which it goes on with the others: one line for each."""
    new = [output for output in step.outputs if output.first]
    old = [output for output in step.outputs if not output.first or output.verified]
    told = []
    if new:
        told.append(
            EngineStep(
                kind="prefill",
                running_requests=len(step.outputs) - len(new),
                queue_requests=queue_requests,
                new_requests=len(new),
                new_tokens=sum(output.prompt_tokens for output in new),
                used_tokens=used_tokens,
            )
        )
    if old:
        verified = [output for output in old if output.verified]
        told.append(
            EngineStep(
                kind="decode",
                running_requests=len(old),
                queue_requests=queue_requests,
                new_tokens=sum(len(output.token_ids) for output in old),
                verify_count=len(verified),
                correct_tokens=sum(len(output.token_ids) - 1 for output in verified),
                used_tokens=used_tokens,
            )
        )
    return told
