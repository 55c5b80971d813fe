"""What an engine behind the server's front must do, and what it tells while it works."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from specbench.dialects import Message
from specbench.units import Second

FinishReason = Literal["stop", "length", "abort"]


class RequestRefused(Exception):  # noqa: N818 (what happened, not an error of ours)
    """A request that can never run (too long, say). Its text is the whole message; the front answers 400."""


class EngineFailed(Exception):  # noqa: N818
    """The engine can't go on. Its text is the cause; the front logs it and the process exits with 1."""


class GenerateRequest(Struct, frozen=True, kw_only=True):
    """One request, checked by the front: `max_tokens` >= 1, `temperature` >= 0."""

    id: str
    prompt_text: str = ""
    """Raw text; empty when `messages` is set."""
    messages: Sequence[Message] | None = None
    """A conversation: the engine applies its own chat template."""
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    ignore_eos: bool = False
    seed: int | None = None


class StepOutput(Struct, frozen=True, kw_only=True):
    """What one step gave one request. Counts are of this step, not cumulative."""

    text: str
    """May be empty while a character is not whole."""
    new_tokens: int
    prompt_tokens: int
    cached_tokens: int = 0
    """Prompt tokens taken from the prefix cache."""
    verify: bool = False
    """It was a verify step. False for the prefill's first token and without speculation."""
    correct_tokens: int | None = None
    """Draft tokens accepted in this step, those cut at the end included; None when the engine does not say."""
    proposed_tokens: int | None = None
    finish_reason: FinishReason | None = None
    """Set on the last output."""


class EngineStep(Struct, frozen=True, kw_only=True):
    """One step of the whole batch, told when it has ended. The front writes batch lines from these."""

    kind: Literal["prefill", "decode"]
    running_requests: int
    """`decode`: in the step; `prefill`: running beside the new ones."""
    queue_requests: int = 0
    """Waiting after the step was formed."""
    new_requests: int = 0
    """`prefill` only."""
    new_tokens: int = 0
    """`prefill`: prompt tokens computed; `decode`: tokens emitted by the batch."""
    cached_tokens: int = 0
    """`prefill` only."""
    verify_count: int = 0
    """Verify steps of single requests in it (SGLang's S): the batch size with speculation, else 0."""
    correct_tokens: int = 0
    """Draft tokens accepted over the batch (SGLang's D)."""
    used_tokens: int = 0
    """KV cache slots in use after the step."""
    graph: bool = False
    """Whether a recorded graph was replayed."""


class EngineLog(Protocol):
    """Where an engine says what happens. Calls are cheap and may come from the event loop's thread only."""

    def phase(
        self, name: Literal["weights", "kv_cache", "graph_capture", "drafter"], *, done: bool, elapsed_s: Second = 0.0
    ) -> None:
        """A part of the start-up begins (`done` false) or has ended."""
        ...

    def warning(self, text: str) -> None:
        """One line, as it stands."""
        ...

    def step(self, step: EngineStep) -> None: ...


class EngineFacts(Struct, frozen=True, kw_only=True):
    """What is true of a running engine and does not change."""

    dialect_version: str
    """The SGLang version whose endpoints, keys and log the front imitates."""
    simulated: bool
    model_path: str
    served_model_name: str
    resolved: dict[str, Any]
    """All resolved server arguments under SGLang's names, for `/server_info`."""
    algorithm: str | None = None
    """`EAGLE3`, …; None without speculation."""
    draft_tokens: int = 0
    """K in SGLang's sense: tokens verified a step, bonus slot included; 0 without speculation."""
    steps: int = 0
    topk: int = 0
    has_drafter: bool = False
    """A second model is loaded (not for NGRAM)."""
    graphs: bool = False
    """Whether graphs are captured at start-up."""
    graph_word: Literal["cuda", "cpu"] | None = "cuda"
    """`cuda graph:` or `cpu graph:` in the log; None: the engine knows no graphs, and the log does not speak of them."""
    max_running_requests: int = 1
    context_length: int = 4096
    """Prompt and answer together, in tokens."""
    capacity_tokens: int = 1
    """Slots of the KV cache."""
    dtype: str = "torch.bfloat16"
    architecture: str = "KimiK25ForConditionalGeneration"
    weight_gb: float = 0.0
    extra: dict[str, Any] = {}
    """Further top-level keys of `/server_info`, such as the real engine's own version."""


class Backend(Protocol):
    """An engine. One object lives as long as the server."""

    @property
    def facts(self) -> EngineFacts:
        """Complete before `start`, so that the log's first lines can be written."""
        ...

    async def start(self, log: EngineLog) -> None:
        """Loads; returns when requests are welcome. Raises EngineFailed."""
        ...

    async def failed(self) -> EngineFailed:
        """Returns when the engine has died without being stopped, also while nothing runs."""
        ...

    async def stop(self) -> None:
        """Ends every request with finish reason `abort`, then the engine. May be called twice."""
        ...

    def generate(self, request: GenerateRequest) -> AsyncGenerator[StepOutput, None]:
        """One output a step. Closing the iterator aborts the request. Raises RequestRefused before the first output,
        EngineFailed at any time."""
        ...

    async def flush(self) -> None:
        """Empties the prefix cache. Called only while nothing runs or waits."""
        ...

    def prompt_tokens(self, request: GenerateRequest) -> int | None:
        """Length of the prompt, when it can be told before the request runs; None otherwise."""
        ...

    @property
    def running_requests(self) -> int: ...

    @property
    def queue_requests(self) -> int: ...
