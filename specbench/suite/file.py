"""The shape of a suite file as a person writes it; `specbench schema` prints it as a JSON Schema."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from specbench.suite.rehearsal import Rehearsal
from specbench.suite.scaling import Launcher, Packing, Slurm
from specbench.suite.types import (
    Drafter,
    Expected,
    Hardware,
    Method,
    Model,
    Name,
    Positive,
    Seconds,
    Server,
    Speculation,
    StepTokens,
    Text,
    VariableName,
    Warmup,
    Workload,
)

DraftTokens = Annotated[int, Meta(ge=2, le=1024)]
TopK = Annotated[int, Meta(ge=1, le=1024)]


class Overrides(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a variant may say for itself; left out: as `server` and `engine` say for all."""

    engine: Annotated[Text | None, Meta(description="Server kind; left out: the file's `engine`")] = None
    cuda_graph: Annotated[bool | None, Meta(description="Left out: as the engine likes")] = None
    python: Annotated[str | None, Meta(description="Interpreter that launches the engine")] = None
    tensor_parallel: Annotated[Positive | None, Meta(description="GPUs that one server spans")] = None
    args: Annotated[tuple[str | int | float, ...], Meta(description="Appended to `server.args`")] = ()
    env: Annotated[dict[VariableName, str | int | float], Meta(description="Laid over `server.env`")] = field(
        default_factory=dict
    )
    host: Annotated[Text | None, Meta(description="Address that the server binds to")] = None
    url: Annotated[str | None, Meta(description="Engine `external`: where it is already served")] = None
    log: Annotated[str | None, Meta(description="Engine `external`: its log file")] = None
    startup_timeout_s: Annotated[Seconds | None, Meta(description="Seconds until it must be ready")] = None
    stop_grace_s: Annotated[Seconds | None, Meta(description="Seconds between SIGTERM and SIGKILL")] = None
    stall_timeout_s: Annotated[Seconds | None, Meta(description="Seconds without progress until it counts as hung")] = None


class VariantFile(Overrides, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server configuration. Without `speculation` it decodes plainly, as a baseline does."""

    name: Annotated[Name, Meta(description="Heads its rows in every table and names its folder")]
    speculation: Annotated[Speculation | None, Meta(description="How it speculates")] = None


class MatrixSpeculation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all variants of the matrix share of their speculation; the axes add the rest."""

    method: Annotated[Method | None, Meta(description="How to draft; may be left out when the drafter states it")] = None
    drafter: Annotated[str | None, Meta(description="A name under `drafters`")] = None
    draft_tokens: Annotated[DraftTokens | None, Meta(description="Tokens verified a step, bonus slot included")] = None
    steps: Annotated[Positive | None, Meta(description="Draft steps; left out with topk 1: draft_tokens - 1")] = None
    topk: Annotated[TopK, Meta(description="Branches a draft step")] = 1
    ngram: Annotated[Positive | None, Meta(description="Prompt lookup: longest n-gram matched")] = None
    synthetic_length: Annotated[
        StepTokens | None,
        Meta(description="Tokens a step that the server pretends to accept: what a step costs, never ranked"),
    ] = None


class MatrixBase(Overrides, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all variants of the matrix share."""

    speculation: Annotated[MatrixSpeculation | None, Meta(description="What their speculation shares")] = None


def _axis(description: str) -> Meta:
    return Meta(min_length=1, max_length=64, description=description, extra_json_schema={"uniqueItems": True})


class Axes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every combination becomes a variant; the first axis written changes slowest."""

    drafter: Annotated[tuple[str, ...], _axis("Names under `drafters`")] | UnsetType = UNSET
    method: Annotated[tuple[Method, ...], _axis("Ways to draft")] | UnsetType = UNSET
    draft_tokens: Annotated[tuple[DraftTokens, ...], _axis("Tokens verified a step")] | UnsetType = UNSET
    steps: Annotated[tuple[Positive, ...], _axis("Draft steps")] | UnsetType = UNSET
    topk: Annotated[tuple[TopK, ...], _axis("Branches a draft step")] | UnsetType = UNSET
    cuda_graph: Annotated[tuple[bool, ...], _axis("Graphs on (true), off (false)")] | UnsetType = UNSET
    engine: Annotated[tuple[Text, ...], _axis("Server kinds")] | UnsetType = UNSET
    tensor_parallel: Annotated[tuple[Positive, ...], _axis("GPUs that one server spans")] | UnsetType = UNSET


class Exclusion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leaves out every combination that has all of these values."""

    drafter: str | None = None
    method: Method | None = None
    draft_tokens: int | None = None
    steps: int | None = None
    topk: int | None = None
    cuda_graph: bool | None = None
    engine: str | None = None
    tensor_parallel: int | None = None


class MatrixFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variants by combination."""

    axes: Annotated[Axes, Meta(description="What varies", extra_json_schema={"minProperties": 1})]
    base: Annotated[MatrixBase, Meta(description="What all of them share")] = MatrixBase()
    name: Annotated[
        Text | None, Meta(description="Template such as '{drafter}-d{draft_tokens}'; left out: made from the axes")
    ] = None
    exclude: Annotated[
        tuple[Annotated[Exclusion, Meta(extra_json_schema={"minProperties": 1})], ...],
        Meta(description="Combinations to leave out"),
    ] = ()


class SuiteFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A specbench suite: which servers are compared, and under which load."""

    name: Annotated[Name, Meta(description="Begins the name of the results folder")]
    model: Annotated[Text | Model, Meta(description="The target: folder or hub repository")]
    engine: Annotated[Text | None, Meta(description="Server kind of every variant that names none")] = None
    server: Annotated[Server, Meta(description="What all variants' servers have in common")] = Server()
    drafters: Annotated[dict[Name, Text | Drafter], Meta(description="Drafters by name: a path, or a mapping")] = field(
        default_factory=dict
    )
    baseline: Annotated[
        str | None, Meta(description="The variant that others are compared with; left out: the first without speculation")
    ] = None
    variants: Annotated[tuple[VariantFile, ...], Meta(description="Variants one by one")] = ()
    matrix: Annotated[MatrixFile | None, Meta(description="Variants by combination; they follow the named ones")] = None
    workloads: Annotated[tuple[Workload, ...], Meta(min_length=1, description="The load, the same for every variant")]
    launches: Annotated[
        int, Meta(ge=1, le=1000, description="Server launches a variant: the sample size of every comparison")
    ] = 1
    seed: Annotated[int, Meta(ge=0, description="Of the prompts drawn and the order of launches")] = 0
    hardware: Annotated[Hardware, Meta(description="What the suite needs")] = Hardware()
    packing: Annotated[
        Packing | bool,
        Meta(description="on: servers side by side, each on GPUs of its own; control: each arm alone as well, to compare"),
    ] = "off"
    launcher: Annotated[Launcher, Meta(description="Where servers run: on this machine, or as jobs of Slurm")] = "local"
    slurm: Annotated[Slurm, Meta(description="What a job asks of Slurm")] = Slurm()
    expected: Annotated[Expected, Meta(description="A guess, only for the estimate of the duration")] = Expected()
    warmup: Annotated[Warmup, Meta(description="Requests of each launch that are never counted")] = Warmup()
    secrets: Annotated[
        tuple[VariableName, ...],
        Meta(description="Environment variables, beside *TOKEN, *KEY, …, whose values are never stored or shown"),
    ] = ()
    rehearsal: Annotated[Rehearsal, Meta(description="The simulated engine's cost model")] = Rehearsal()
