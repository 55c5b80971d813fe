"""The nouns of a suite file. One word per thing, from YAML to table heading."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from specbench.suite.rehearsal import Rehearsal
from specbench.suite.scaling import Launcher, Packing, Slurm, gpus_needed
from specbench.units import PerSecond, Second

Method = Literal["eagle", "eagle3", "mtp", "draft_model", "prompt_lookup", "dflash"]
"""Engine-neutral ways to draft. `draft_model` is SGLang's STANDALONE; `prompt_lookup` its NGRAM."""

# The last part of these patterns refuses a trailing line break, which `$` alone lets pass.
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$(?!\n)"
VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
VariableName = Annotated[str, Meta(pattern=VARIABLE_PATTERN)]
Text = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target: a local folder, a hub repository, or one of the models that specbench makes itself."""

    path: Annotated[Text, Meta(description="Folder, hub repository, or a `specbench:` model of the quickstart")]
    revision: Annotated[str | None, Meta(description="Branch, tag or commit of the hub repository")] = None


class Drafter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A drafter's checkpoint. `method` states what it was trained as."""

    path: Annotated[Text, Meta(description="Folder, hub repository, or a `specbench:` model of the quickstart")]
    method: Annotated[Method | None, Meta(description="What it was trained as; used where `speculation` states none")] = None
    revision: Annotated[str | None, Meta(description="Branch, tag or commit of the hub repository")] = None


StepTokens = Annotated[float, Meta(ge=1.0, le=1024.0)]


class Speculation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to speculate, in words that every engine maps to its own flags."""

    method: Annotated[Method | None, Meta(description="How to draft; may be left out when the drafter states it")] = None
    drafter: Annotated[str | None, Meta(description="A name under `drafters`; none for prompt lookup")] = None
    draft_tokens: Annotated[
        int,
        Meta(ge=2, le=1024, description="Tokens verified a step, bonus slot included; draft_tokens - 1 are proposed"),
    ]
    steps: Annotated[Positive | None, Meta(description="Draft steps; left out with topk 1: draft_tokens - 1")] = None
    topk: Annotated[int, Meta(ge=1, le=1024, description="Branches a draft step")] = 1
    ngram: Annotated[Positive | None, Meta(description="Prompt lookup: longest n-gram matched")] = None
    synthetic_length: Annotated[
        StepTokens | None,
        Meta(description="Tokens a step that the server pretends to accept: what a step costs, never ranked"),
    ] = None

    @property
    def steps_count(self) -> int:
        """Draft steps, stated or implied."""
        return self.draft_tokens - 1 if self.steps is None else self.steps

    @property
    def proposed_tokens(self) -> int:
        """K: tokens proposed a verify step."""
        return self.draft_tokens - 1

    @property
    def longest_accept_tokens(self) -> int:
        """The ceiling of acceptance length: min(K, steps) + 1."""
        return min(self.proposed_tokens, self.steps_count) + 1


class Server(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all variants' servers have in common; a variant may override each."""

    python: Annotated[str | None, Meta(description="Interpreter that launches the engine; may be another venv's")] = None
    tensor_parallel: Annotated[Positive, Meta(description="GPUs that one server spans")] = 1
    args: Annotated[tuple[str | int | float, ...], Meta(description="Engine flags passed through, word by word")] = ()
    env: Annotated[
        dict[VariableName, str | int | float], Meta(description="Environment variables added to the server's")
    ] = field(default_factory=dict)
    host: Annotated[Text, Meta(description="Address that the server binds to")] = "127.0.0.1"
    url: Annotated[str | None, Meta(description="Engine `external`: where it is already served")] = None
    log: Annotated[str | None, Meta(description="Engine `external`: its log file, read while the load runs")] = None
    startup_timeout_s: Annotated[Seconds, Meta(description="Seconds until it must be ready")] = 1800.0
    stop_grace_s: Annotated[Seconds, Meta(description="Seconds between SIGTERM and SIGKILL")] = 20.0
    stall_timeout_s: Annotated[
        Seconds, Meta(description="Seconds without a chunk or an ended request on any stream until it counts as hung")
    ] = 300.0


class Variant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server configuration, resolved: nothing is left to inherit."""

    name: Name
    engine: str
    speculation: Speculation | None = None
    cuda_graph: bool | None = None
    """None leaves it to the engine."""
    server: Server

    @property
    def gpu_count(self) -> int:
        """GPUs that its server spans, where the suite runs on any: tensor × pipeline × data parallel."""
        return gpus_needed(self.server.tensor_parallel, self.server.args)


class Arrival(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An open loop: when requests are due, whatever became of those before. Latency counts from then."""

    rate_rps: Annotated[Annotated[float, Meta(gt=0)] | None, Meta(description="Requests a second")] = None
    process: Annotated[
        Literal["poisson", "constant", "gamma"],
        Meta(description="How the time between requests varies; gamma: `burstiness`"),
    ] = "poisson"
    burstiness: Annotated[
        float, Meta(gt=0, description="Shape of the gamma process: 1 is poisson, smaller comes in bursts")
    ] = 1.0
    duration_s: Annotated[Seconds | None, Meta(description="As many requests as the rate makes in this time")] = None
    request_count: Annotated[Positive | None, Meta(description="Requests, instead of `duration_s`")] = None
    trace: Annotated[
        Text | None,
        Meta(description="JSONL file with `at_s` (seconds) or `timestamp` (milliseconds), instead of `rate_rps`"),
    ] = None

    @property
    def count(self) -> int:
        """Requests; 0 where only the trace knows."""
        if self.request_count is not None:
            return self.request_count
        return max(1, round((self.rate_rps or 0) * self.duration_s)) if self.rate_rps and self.duration_s else 0

    @property
    def length_s(self) -> Second:
        """From the first to the last request, about; 0 where only the trace knows."""
        return self.duration_s or (self.count / self.rate_rps if self.rate_rps else 0.0)


class Slo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request must keep to count as goodput. At least one of the two."""

    ttft_s: Annotated[Seconds | None, Meta(description="Longest time from due to the first chunk")] = None
    tpot_s: Annotated[Seconds | None, Meta(description="Longest time a token after the first chunk")] = None


class Saturate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep: the last `concurrency`, or `arrival.rate_rps`, is multiplied until the goodput under `slo` stops growing."""

    max_streams_count: Annotated[Positive | None, Meta(description="Closed loop: streams of the last level")] = None
    max_rate_rps: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Open loop: requests a second of the last level")
    ] = None
    step_ratio: Annotated[float, Meta(gt=1, description="From level to level")] = 2.0

    def levels(self, start: float) -> tuple[float, ...]:
        """The first, each `step_ratio` times the one before, and the last."""
        last = float(self.max_streams_count or self.max_rate_rps or start)
        found = [start]
        while found[-1] * self.step_ratio < last:
            found.append(found[-1] * self.step_ratio)
        return (*found, last) if last > found[-1] else tuple(found)


Streams = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": 100_000})]
"""0 is never written in a file: it is the level of an open loop."""
OPEN_LOOP: Final = (0,)


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stream of requests, offered at each concurrency in turn (closed loop), or as `arrival` says (open loop)."""

    name: Name
    dataset: Annotated[Text, Meta(description="`builtin`, `jsonl` with `path`, a published set, `random`")] = "builtin"
    path: Annotated[str | None, Meta(description="File of prompts; of a published set: a copy on this machine")] = None
    prompt_word_count: Annotated[int, Meta(ge=1, le=1_000_000, description="Dataset `random`: words a prompt")] = 256
    categories: Annotated[tuple[Text, ...], Meta(description="Categories to draw prompts from; all when empty")] = ()
    concurrency: Annotated[tuple[Streams, ...], Meta(min_length=1, description="Streams held, level after level")] = (1,)
    arrival: Annotated[Arrival | None, Meta(description="Open loop, instead of `concurrency`")] = None
    request_count: Annotated[Positive | None, Meta(description="Requests a level; 4 a stream when left out")] = None
    slo: Annotated[Slo | None, Meta(description="What a request must keep to count as goodput")] = None
    saturate: Annotated[Saturate | None, Meta(description="Sweep until the goodput under `slo` stops growing")] = None
    max_output_tokens: Annotated[Positive, Meta(description="Longest answer")] = 256
    temperature: Annotated[float, Meta(ge=0, description="0 is greedy")] = 0.0
    ignore_eos: Annotated[
        bool, Meta(description="Run past the end of the answer to `max_output_tokens`; changes acceptance")
    ] = False
    api: Annotated[
        Literal["chat", "generate"], Meta(description="`chat` applies the server's chat template, `generate` sends raw text")
    ] = "chat"
    thinking: Annotated[
        bool | None,
        Meta(description="Turns the template's thinking on or off (`chat_template_kwargs`); left out: the model's default"),
    ] = None
    timeout_s: Annotated[Seconds, Meta(description="Seconds until a request counts as failed")] = 600.0
    rate_cap_rps: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="At most so many requests a second, for an endpoint that others share"),
    ] = None

    @property
    def sweep_name(self) -> str:
        """What the levels of a sweep have in common: each rate of an open loop's sweep is a workload of its own."""
        return self.name.rpartition("-")[0] if self.saturate is not None and self.arrival is not None else self.name

    def level_request_count(self, concurrency: int) -> int:
        """Requests measured at one concurrency; 0 where only the trace of an open loop knows."""
        if self.arrival is not None:
            return self.arrival.count
        return max(concurrency, self.request_count or 4 * concurrency)


class Warmup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests sent before the first level of a launch and never counted."""

    request_count: Annotated[int, Meta(ge=0, description="Requests a launch")] = 2
    max_output_tokens: Annotated[Positive, Meta(description="Longest answer")] = 32


class Hardware(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the suite needs. 0 GPUs: it runs on the CPU."""

    gpu_count: Annotated[int, Meta(ge=0, le=1024, description="GPUs on the machine that the suite may use")] = 0
    gpu_ids: Annotated[
        tuple[Annotated[int, Meta(ge=0)], ...],
        Meta(description="Which ones, by index; left out: the first of those that NVML or nvidia-smi shows"),
    ] = ()
    gpu_memory_bytes: Annotated[
        Positive | None, Meta(description="Of one GPU, for `check` on another machine; left out: as nvidia-smi says")
    ] = None
    gpu_hour_price: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="What an hour of one GPU costs, in your currency; only for `plan`"),
    ] = None


class Expected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user's guess, used for nothing but the estimate of a run's duration."""

    startup_s: Annotated[Seconds, Meta(description="Seconds until a server is ready")] = 60.0
    per_user_tps: Annotated[float, Meta(gt=0, description="Output tokens a second that one stream sees")] = 30.0


class Suite(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The question asked, resolved: variants are whole, the matrix is expanded, variables are replaced."""

    name: Name
    path: str
    """The file it was read from, as given."""
    model: Model
    drafters: dict[str, Drafter] = field(default_factory=dict)
    variants: tuple[Variant, ...]
    baseline: str
    """Name of the variant that the others are compared with."""
    workloads: tuple[Workload, ...]
    launches: int = 1
    seed: int = 0
    hardware: Hardware = Hardware()
    packing: Packing = "off"
    launcher: Launcher = "local"
    slurm: Slurm = Slurm()
    expected: Expected = Expected()
    warmup: Warmup = Warmup()
    secrets: tuple[VariableName, ...] = ()
    """Further environment variables whose values are never stored or shown."""
    rehearsal: Rehearsal = Rehearsal()
    """The simulated engine's cost model."""
    sources: tuple[str, ...] = ()
    """Names of the environment variables that the file used."""

    def variant(self, name: str) -> Variant:
        """Raises KeyError."""
        for one in self.variants:
            if one.name == name:
                return one
        raise KeyError(name)

    def workload(self, name: str) -> Workload:
        """Raises KeyError."""
        for one in self.workloads:
            if one.name == name:
                return one
        raise KeyError(name)

    def drafter_of(self, variant: Variant) -> Drafter | None:
        """The drafter that a variant names, if any."""
        name = variant.speculation.drafter if variant.speculation else None
        return self.drafters[name] if name else None


def per_user_seconds(tokens: int, per_user_tps: PerSecond) -> Second:
    """Time one stream needs for so many output tokens."""
    return tokens / per_user_tps
