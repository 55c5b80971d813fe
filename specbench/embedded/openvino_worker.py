"""OpenVINO GenAI's pipeline in a process of its own: `python -m specbench.embedded.openvino_worker FD`.

`step()` holds the interpreter's lock for a whole step (20 to 300 ms); in the server's own process every other request
and every health check would stand still for so long. The worker ends when the other end of FD is closed, so it can't
outlive the server.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from specbench import clock
from specbench.embedded.openvino_text import IncrementalText
from specbench.embedded.openvino_wire import Add, Cancel, Channel, Failed, Fatal, Loading, Output, Ready, Settings, Stepped

if TYPE_CHECKING:
    import openvino_genai

WARMUP_TOKENS = 12
BLOCK_TOKENS = 32
"""Tokens in one block of OpenVINO's KV cache on a CPU."""


class Request:
    """A request inside the pipeline."""

    def __init__(self, add: Add, handle: Any, text: IncrementalText, prompt_tokens: int) -> None:
        self.add = add
        self.handle = handle
        self.text = text
        self.prompt_tokens = prompt_tokens
        self.output_tokens = 0


class Pipeline:
    """The continuous-batching pipeline and the requests in it."""

    def __init__(self, settings: Settings, told: Callable[[Loading], None]) -> None:
        import openvino_genai

        self._genai = openvino_genai
        self._settings = settings
        started_s = clock.now_s()
        told(Loading(name="weights"))
        self._tokenizer = openvino_genai.Tokenizer(settings.model)
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(
            settings.model, self._tokenizer, self._scheduler(), "CPU", **self._speculation()
        )
        told(Loading(name="weights", done=True, elapsed_s=clock.now_s() - started_s))
        self._requests: dict[int, Request] = {}
        self._warm_up()

    @property
    def busy(self) -> bool:
        """Whether a step has anything to do."""
        return bool(self._requests) or bool(self._pipeline.has_non_finished_requests())

    def add(self, add: Add) -> None:
        """Raises RuntimeError or ValueError when the pipeline refuses it."""
        prompt = add.text
        if add.messages is not None:
            prompt = self._tokenizer.apply_chat_template(list(add.messages), add_generation_prompt=True)
        prompt_ids = self._tokenizer.encode(prompt, add_special_tokens=add.messages is None).input_ids
        prompt_tokens = int(prompt_ids.shape[1])
        if prompt_tokens + add.max_tokens > self._settings.context_length:
            longest = self._settings.context_length
            raise ValueError(
                f"{prompt_tokens} prompt tokens and {add.max_tokens} more exceed the context of {longest} tokens"
            )
        handle = self._pipeline.add_request(add.id, prompt_ids, self._generation(add))
        text = IncrementalText(lambda ids: str(self._tokenizer.decode(list(ids))) if ids else "")
        self._requests[add.id] = Request(add, handle, text, prompt_tokens)

    def cancel(self, request_id: int) -> None:
        """Unknown or finished: nothing happens."""
        request = self._requests.pop(request_id, None)
        if request is not None:
            request.handle.cancel()

    def step(self) -> Stepped:
        """One step of the batch; what it gave each request."""
        started_s = clock.now_s()
        self._pipeline.step()
        step_s = clock.now_s() - started_s
        outputs = [output for request in list(self._requests.values()) if (output := self._read(request)) is not None]
        return Stepped(step_s=step_s, outputs=outputs, running_requests=len(self._requests))

    def _read(self, request: Request) -> Output | None:
        status = request.handle.get_status()
        ignored = status == self._genai.GenerationStatus.IGNORED
        if not ignored and not request.handle.can_read():
            return None
        ids: list[int] = []
        reason = None
        if not ignored:
            (given,) = request.handle.read().values()
            ids, reason = list(given.generated_ids), self._finish_reason(given)
        if ignored or reason is not None:
            del self._requests[request.add.id]
        error = "the KV cache has no room for this request" if ignored else None
        return self._output(request, ids, reason, error)

    def _output(self, request: Request, ids: list[int], reason: str | None, error: str | None) -> Output:
        """A request's first tokens come from its prefill. They are a verify step too only when there are several: a prompt
        that took more than one step lets the drafter run ahead of the last."""
        first = request.output_tokens == 0
        verified = self._settings.proposed_tokens > 0 and bool(ids) and (not first or len(ids) > 1)
        room = request.add.max_tokens - request.output_tokens - 1
        request.output_tokens += len(ids)
        return Output(
            id=request.add.id,
            token_ids=ids,
            text=request.text.add(ids, last=reason is not None),
            prompt_tokens=request.prompt_tokens,
            first=first,
            verified=verified,
            proposed_tokens=self._proposed(room) if verified else 0,
            finish_reason=reason,
            error=error,
        )

    def _proposed(self, room: int) -> int | None:
        """OpenVINO drafts no further than the length limit: min(K, tokens left - 1). An upper bound: now and then its
        drafter stops short (1 token in 115, measured). How many tokens prompt lookup proposed, it does not say."""
        return None if self._settings.ngram else min(self._settings.proposed_tokens, room)

    def _finish_reason(self, given: "openvino_genai.GenerationOutput") -> str | None:
        reasons = self._genai.GenerationFinishReason
        return {reasons.STOP: "stop", reasons.LENGTH: "length"}.get(given.finish_reason)

    def _scheduler(self) -> "openvino_genai.SchedulerConfig":
        """Prefix caching is off: a prompt that comes twice is computed twice, so no flush is ever needed. With a draft model
        OpenVINO splits the blocks between the two, hence twice as many."""
        config = self._genai.SchedulerConfig()
        models_count = 1 if self._settings.drafter is None else 2
        config.num_kv_blocks = models_count * -(-self._settings.capacity_tokens // BLOCK_TOKENS)
        config.max_num_seqs = self._settings.max_running_requests
        config.max_num_batched_tokens = self._settings.max_prefill_tokens
        config.enable_prefix_caching = False
        return config

    def _speculation(self) -> dict[str, Any]:
        if self._settings.drafter is not None:
            return {"draft_model": self._genai.draft_model(self._settings.drafter, "CPU")}
        return {"prompt_lookup": True} if self._settings.ngram else {}

    def _generation(self, add: Add) -> "openvino_genai.GenerationConfig":
        config = self._genai.GenerationConfig()
        config.apply_chat_template = False
        config.max_new_tokens = add.max_tokens
        config.ignore_eos = add.ignore_eos
        config.set_eos_token_id(self._tokenizer.get_eos_token_id())
        config.do_sample = add.temperature > 0
        if config.do_sample:
            config.temperature, config.top_p = add.temperature, add.top_p
            config.rng_seed = add.id if add.seed is None else add.seed
        if self._settings.proposed_tokens:
            config.num_assistant_tokens = self._settings.proposed_tokens
        if self._settings.ngram:
            config.max_ngram_size = self._settings.ngram
        return config

    def _warm_up(self) -> None:
        """The first step of each shape compiles kernels (half a second): once here instead of in somebody's request."""
        self.add(Add(id=0, text="1, 2, 3, 4, 5, 6,", max_tokens=WARMUP_TOKENS, ignore_eos=True))
        while self.busy:
            self.step()


def serve(channel: Channel, pipeline: Pipeline) -> None:
    """Steps while there is work and sleeps while there is none; returns when the other end is closed."""
    while True:
        for line in channel.receive(wait=not pipeline.busy):
            _obey(channel, pipeline, line)
        if channel.closed:
            return
        if pipeline.busy:
            channel.send(pipeline.step())


def _obey(channel: Channel, pipeline: Pipeline, line: bytes) -> None:
    message = msgspec.json.decode(line, type=Add | Cancel)
    if isinstance(message, Cancel):
        pipeline.cancel(message.id)
        return
    try:
        pipeline.add(message)
    except (RuntimeError, ValueError) as error:
        channel.send(Failed(id=message.id, message=first_line(error)))


def first_line(error: BaseException) -> str:
    """OpenVINO's messages begin with the source line that threw; the sentence is in the last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def main(fd: int) -> int:
    """SIGINT and SIGTERM go to the whole group; the server drains, and decides when the worker ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=fd))
    lines = channel.receive(wait=True)
    if not lines:
        return 0
    try:
        settings = msgspec.json.decode(lines[0], type=Settings)
        pipeline = Pipeline(settings, channel.send)
        channel.send(Ready(version=pipeline_version()))
        serve(channel, pipeline)
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001  the server logs it and exits; a traceback would say less
        channel.send(Fatal(message=first_line(error)))
        return 1
    return 0


def pipeline_version() -> str:
    """`2026.4.1.0`, without the build's own suffix."""
    import openvino_genai

    return str(openvino_genai.get_version()).partition("-")[0]


if __name__ == "__main__":
    code = main(int(sys.argv[1]))
    sys.stdout.flush()
    os._exit(code)  # OpenVINO's threads may hold an ordinary exit back
