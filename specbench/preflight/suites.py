"""A suite's variants as facts: reads each checkpoint once, and starts nothing."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from specbench import datasets, engines
from specbench.analysis import Finding
from specbench.checkpoints import Checkpoint
from specbench.checkpoints.kinds import Kind, kind_of
from specbench.checkpoints.read import read_checkpoint
from specbench.checkpoints.weights import Weights, read_weights
from specbench.engines import Launch
from specbench.errors import SpecbenchError
from specbench.execution.gpus import gpus
from specbench.execution.schedule import schedule_s
from specbench.models import is_own
from specbench.plan import planned_slot
from specbench.preflight import Facts, Load, find
from specbench.suite import Drafter, Method, Suite, Variant, Workload
from specbench.suite.secrets import secrets_of

METHODS: Final[Mapping[Kind, Method]] = {
    "eagle1": "eagle",
    "eagle3": "eagle3",
    "mtp": "mtp",
    "dflash": "dflash",
    "plain": "draft_model",
}

UNREADABLE: Final = "prompts_unreadable"
LOOKED_AT_COUNT: Final = 256
"""Prompts whose length is looked at."""
BYTES_PER_TOKEN: Final = 8
"""More than any prompt of these has: what follows is a lower bound of its tokens."""

_read = cache(read_checkpoint)
_read_weights = cache(read_weights)
_gpus = cache(gpus)


class Examined(Struct, frozen=True, kw_only=True):
    """What a look at a suite gave."""

    findings: tuple[Finding, ...]
    unread: tuple[Checkpoint, ...]
    """Checkpoints of which something could not be read, each once."""

    @property
    def has_errors(self) -> bool:
        """Whether something would fail."""
        return any(one.severity == "error" for one in self.findings)

    @property
    def refused(self) -> dict[str, str]:
        """By variant: why it must not be launched."""
        found: dict[str, str] = {}
        for one in self.findings:
            if one.severity == "error" and one.variant is not None:
                found.setdefault(one.variant, f"{one.message} {one.remedy}".strip())
        return found


def examine(suite: Suite, rehearsing: bool = False, weights: bool = False) -> Examined:
    """Every variant that specbench launches; one that the engine has no command for is an error too. Without secrets."""
    findings: list[Finding] = list(_prompt_findings(suite))
    unread: dict[str, Checkpoint] = {}
    for variant in suite.variants:
        if not engines.get(variant.engine).launches:
            continue
        try:
            facts = facts_of(suite, variant, rehearsing)
            facts = replace(facts, draft_weights=_weights(facts)) if weights else facts
        except SpecbenchError as error:
            findings.append(Finding(code="no_command", severity="error", variant=variant.name, message=str(error)))
            continue
        findings += find(facts)
        for one in (facts.target, facts.draft):
            if one is not None and one.unknown:
                unread[one.name] = one
    secrets = secrets_of(suite, os.environ)
    named = tuple(replace(one, name=secrets.clean(one.name), unknown=secrets.clean(one.unknown)) for one in unread.values())
    return Examined(findings=tuple(map(secrets.record, findings)), unread=named)


def _prompt_findings(suite: Suite) -> Iterator[Finding]:
    """Prompts and traces on this machine that can't be read; what would have to be fetched is left to `run`."""
    for workload in suite.workloads:
        fetched = workload.dataset not in ("builtin", "jsonl", "random") and workload.path is None
        try:
            schedule_s(workload, suite.seed)
            if not fetched:
                datasets.get(workload.dataset).prompts(workload, suite.seed, 1)
        except SpecbenchError as error:
            message = f"workload '{workload.name}': {error}"
            yield Finding(code=UNREADABLE, severity="error", message=message, remedy="Nothing would be sent; put it right.")


def facts_of(suite: Suite, variant: Variant, rehearsing: bool = False) -> Facts:
    """What its command line, its environment and its checkpoints say."""
    engine, drafter = engines.get(variant.engine), suite.drafter_of(variant)
    version = suite.rehearsal.version if rehearsing else engine.version(variant)
    slot = planned_slot(suite, variant)
    launch = Launch(model=suite.model, drafter=drafter, variant=variant, slot=slot, version=version)
    command = engine.rehearsal(launch) if rehearsing else engine.command(launch)
    shell = {name: value for name, value in os.environ.items() if name not in command.unset}
    target = None if is_own(suite.model.path) else _read(suite.model.path, suite.model.revision)
    facts = Facts(
        engine=variant.engine,
        version=version,
        argv=command.argv,
        env={**shell, **command.env},
        target=target,
        load=_load(suite, variant),
        gpu_memory_bytes=None if rehearsing else _gpu_memory_bytes(suite),
        variant=variant.name,
        synthetic=variant.speculation is not None and variant.speculation.synthetic_length is not None,
    )
    return replace(facts, draft=_draft(facts.words.draft_path, drafter))


def _gpu_memory_bytes(suite: Suite) -> int | None:
    if not suite.hardware.gpu_count:
        return None
    if suite.hardware.gpu_memory_bytes is not None:
        return suite.hardware.gpu_memory_bytes
    return min((gpu.memory_bytes for gpu in _gpus() if gpu.memory_bytes is not None), default=None)


def _weights(facts: Facts) -> tuple[Weights, ...]:
    """Of a drafter in a local folder."""
    path = Path(facts.draft.name).expanduser() if facts.draft is not None else None
    return _read_weights(path) if path is not None and path.is_dir() else ()


def with_methods(suite: Suite) -> Suite:
    """The suite with each method that it leaves out taken from the drafter's checkpoint, where that can be told."""
    return replace(suite, variants=tuple(_with_method(suite, variant) for variant in suite.variants))


def _with_method(suite: Suite, variant: Variant) -> Variant:
    drafter = suite.drafter_of(variant)
    if variant.speculation is None or variant.speculation.method or drafter is None or drafter.method:
        return variant
    method = METHODS.get(kind_of(_read(drafter.path, drafter.revision)))
    return variant if method is None else replace(variant, speculation=replace(variant.speculation, method=method))


def _draft(path: str | None, drafter: Drafter | None) -> Checkpoint | None:
    """The command line's word counts: raw `args` may name another drafter than the suite."""
    own = drafter is not None and is_own(drafter.path)
    if path is not None and not own:
        return _read(path, drafter.revision if drafter else None)
    return None


def _load(suite: Suite, variant: Variant) -> Load:
    busiest = max(suite.workloads, key=lambda one: max(one.concurrency))
    longest = max(suite.workloads, key=lambda one: _input_tokens(one, suite.seed) + one.max_output_tokens)
    steps_count, shortest = _fewest_steps(suite, variant)
    return Load(
        max_concurrency=max(busiest.concurrency) or None,
        max_input_tokens=_input_tokens(longest, suite.seed),
        max_output_tokens=longest.max_output_tokens,
        fewest_steps_count=steps_count,
        ignore_eos=any(one.ignore_eos for one in suite.workloads),
        random_prompts=any(one.dataset == "random" for one in suite.workloads),
        busiest=busiest.name,
        longest=longest.name,
        shortest=shortest,
        ignoring=tuple(one.name for one in suite.workloads if one.ignore_eos),
        random=tuple(one.name for one in suite.workloads if one.dataset == "random"),
    )


@cache
def _input_tokens(workload: Workload, seed: int) -> int:
    """At least so many has its longest prompt; 0 where that would have to be fetched."""
    if workload.dataset == "random":
        return workload.prompt_word_count
    if workload.dataset not in ("builtin", "jsonl"):
        return 0
    try:
        prompts = datasets.get(workload.dataset).prompts(workload, seed, LOOKED_AT_COUNT)
    except SpecbenchError:
        return 0
    return max((sum(len(turn.encode()) for turn in one.turns) // BYTES_PER_TOKEN for one in prompts), default=0)


def _fewest_steps(suite: Suite, variant: Variant) -> tuple[int | None, str]:
    """As if every draft token were accepted and every answer ran to its limit, and of which workload; None where only a
    trace knows."""
    longest = variant.speculation.longest_accept_tokens if variant.speculation else 1
    counts = [
        (workload.level_request_count(streams) * workload.max_output_tokens // (streams * longest), workload.name)
        for workload in suite.workloads
        for streams in workload.concurrency
        if streams and workload.level_request_count(streams)
    ]
    return min(counts, key=lambda one: one[0], default=(None, ""))
