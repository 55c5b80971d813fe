"""What all launches of a run share, and what is checked and made before the first one."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from specbench import datasets, engines
from specbench.datasets import Prompt
from specbench.engines import Command, Engine, Launch
from specbench.errors import SpecbenchError
from specbench.execution import selftest
from specbench.execution.control import Control
from specbench.execution.gpus import gpu_obstacles, machine_gpus, simulated
from specbench.execution.scale import one_process_rps
from specbench.execution.schedule import schedule_s
from specbench.execution.slots import PORTS, port_obstacles
from specbench.plan import Plan, Slot
from specbench.records import Event
from specbench.suite import Suite, Variant, Workload
from specbench.suite.secrets import Secrets, api_key_of, secrets_of
from specbench.units import PerSecond

OnEvent = Callable[[Event], None]


@dataclass
class Bench:
    """A plan and how it is to be run."""

    plan: Plan
    on_event: OnEvent
    rehearsal: str | None = None
    """How the load was shrunk, in a sentence; None in a real run."""
    ports: range = PORTS
    refused: Mapping[str, str] | None = None
    """By variant: the fault found before the start, for which it is not launched; None when nobody looked."""
    lacking: str | None = None
    """What this machine lacks for any launch, where that could not be told before the run began: in a cluster's job."""
    prompts: dict[str, tuple[Prompt, ...]] = field(default_factory=dict)
    """By workload, enough for its widest level."""
    client_limit_rps: PerSecond = field(default_factory=lambda: one_process_rps(selftest.last()))
    """Chunks a second that one client process may be offered on this machine."""
    leased_ports: set[int] = field(default_factory=set)
    """Held by launches that run now; a server binds its ports long after they were found free."""
    secrets: Secrets = field(init=False)
    """What must not be stored or shown."""
    _versions: dict[tuple[str, str | None], str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.secrets = secrets_of(self.suite, os.environ)

    @property
    def suite(self) -> Suite:
        """The plan's suite."""
        return self.plan.suite

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Those that will be launched."""
        names = {trial.variant for trial in self.plan.trials}
        return tuple(variant for variant in self.suite.variants if variant.name in names)

    def version(self, variant: Variant) -> str | None:
        """The engine's version, asked once an interpreter; in a rehearsal the imitated one."""
        if self.rehearsal is not None:
            return self.suite.rehearsal.version
        key = (variant.engine, variant.server.python)
        if key not in self._versions:
            self._versions[key] = engines.get(variant.engine).version(variant)
        return self._versions[key]

    def command(self, variant: Variant, slot: Slot, node_index: int = 0) -> Command:
        """What will be started, on one of the slot's nodes. Raises SpecbenchError where the engine has no such command."""
        launch = Launch(
            model=self.suite.model,
            drafter=self.suite.drafter_of(variant),
            variant=variant,
            slot=slot,
            version=self.version(variant),
            node_index=node_index,
        )
        engine = engines.get(variant.engine)
        if self.rehearsal is None:
            return engine.command(launch)
        command = engine.rehearsal(launch)
        faults = self.suite.rehearsal.fault_words(variant.name)
        told = command.env | {"SPECBENCH_SIMULATION": simulation(self.suite)}
        return msgspec.structs.replace(command, argv=(*command.argv, *faults), env=told)


def simulation(suite: Suite) -> str:
    """What the simulated engine is told beside its command line: JSON."""
    drafters = {one.path: {"name": name, "method": one.method} for name, one in suite.drafters.items()}
    told = {"rehearsal": suite.rehearsal, "drafters": drafters, "seed": suite.seed}
    return msgspec.json.encode(told).decode()


async def obstacles(bench: Bench) -> tuple[str, ...]:
    """Everything that is lacking, for all variants, a sentence each; reads the prompts on the way."""
    found = [*prompt_obstacles(bench)]
    for variant in bench.variants:
        found += [sentence async for sentence in _variant_obstacles(bench, variant)]
    launched = [variant for variant in bench.variants if launched_by_us(bench, variant)]
    found += port_obstacles(launched, bench.ports)
    here = machine_gpus(bench.suite, bench.rehearsal is not None)
    if launched and (bench.rehearsal is None or here or simulated() is not None) and bench.suite.launcher == "local":
        found += gpu_obstacles(bench.suite, launched, here)
    return tuple(dict.fromkeys(found))


def launched_by_us(bench: Bench, variant: Variant) -> bool:
    """False where the server is somebody else's."""
    return bench.rehearsal is not None or (variant.engine in engines.names() and engines.get(variant.engine).launches)


def prompt_obstacles(bench: Bench) -> Iterator[str]:
    """Reads the prompts of every workload; a sentence for each that can't be."""
    for workload in bench.suite.workloads:
        try:
            bench.prompts[workload.name] = read_prompts(workload, bench.suite.seed)
        except SpecbenchError as error:
            yield f"workload '{workload.name}': {error}"


def read_prompts(workload: Workload, seed: int) -> tuple[Prompt, ...]:
    """Enough for the widest level, or for every moment of an open loop."""
    widest = max(workload.level_request_count(concurrency) for concurrency in workload.concurrency)
    count = len(schedule_s(workload, seed)) or widest
    return datasets.get(workload.dataset).prompts(workload, seed, count)


async def _variant_obstacles(bench: Bench, variant: Variant) -> AsyncIterator[str]:
    try:
        engine = engines.get(variant.engine)
        if bench.rehearsal is None:
            for sentence in engine.obstacles(bench.suite.model, bench.suite.drafter_of(variant), variant):
                yield sentence
        if engine.launches or bench.rehearsal is not None:
            bench.command(variant, Slot())
        elif variant.server.url and not await _reachable(variant, engine):
            yield f"variant '{variant.name}': nothing answers at {variant.server.url}"
    except SpecbenchError as error:
        yield str(error)


def served_url(variant: Variant) -> str:
    """Where an external server is; `/v1` at its end, as clients of OpenAI's API write it, is not part of that."""
    return str(variant.server.url).rstrip("/").removesuffix("/v1")


async def _reachable(variant: Variant, engine: Engine) -> bool:
    control = Control(served_url(variant), engine.endpoints, api_key=api_key_of(variant, os.environ))
    try:
        return await control.answers(timeout_s=10.0)
    finally:
        await control.close()


def prepare(bench: Bench) -> None:
    """Lets each engine that can fetch or make the models it needs do so, once for each model and drafter."""
    made: set[tuple[str, str | None]] = set()
    for variant in bench.variants:
        drafter = bench.suite.drafter_of(variant)
        key = (variant.engine, drafter.path if drafter else None)
        make = getattr(engines.get(variant.engine), "prepare", None)
        if make is not None and key not in made and bench.rehearsal is None:
            made.add(key)
            make(bench.suite.model, drafter, lambda text: bench.on_event(Event(kind="note", text=text)))


def interpreter(variant: Variant) -> str:
    """The Python that launches the engine."""
    return variant.server.python or sys.executable
