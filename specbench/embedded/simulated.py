"""The simulated server: `python -m specbench.embedded.simulated`, with SGLang's own flags. SIMULATED: it runs no model.

What the flags can't say comes as JSON in the environment variable `SPECBENCH_SIMULATION`: the cost model, the suite's
drafters by path, and the seed. `--fault NAME` (`specbench.suite.faults`) makes it misbehave.
"""

import os
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from specbench.embedded.arguments import ServerArguments, parse
from specbench.embedded.cost_model import LOOKUP, CostModel, Drafting, drafter_kind, launched, stretched
from specbench.embedded.faults import Faults, without_faults
from specbench.embedded.interface import EngineFacts
from specbench.embedded.meeting import meet
from specbench.embedded.simulated_backend import SimulatedBackend
from specbench.suite.rehearsal import Rehearsal

SYNTHETIC: Final = "SGLANG_SIMULATE_ACC_LEN"
VARIABLE: Final = "SPECBENCH_SIMULATION"
USAGE: Final = 2
DIED: Final = 1
NO_FAULTS: Final = Faults()
UNCAPPED: Final = 2048
"""Running requests where SGLang has no cap but its memory."""


class NamedDrafter(Struct, frozen=True, kw_only=True):
    """A drafter as the suite has it."""

    name: str
    method: str | None = None


class Simulation(Struct, frozen=True, kw_only=True):
    """What `SPECBENCH_SIMULATION` holds."""

    rehearsal: Rehearsal = Rehearsal()
    drafters: dict[str, NamedDrafter] = {}
    """By path."""
    seed: int = 0
    synthetic_length: float | None = None
    """Tokens a step to pretend to accept, as SGLang takes it from the environment."""


def main(argv: Sequence[str]) -> int:
    """Serves until a signal; returns the exit code."""
    from specbench.embedded.serve import serve

    try:
        simulation = simulation_of(os.environ)
    except msgspec.DecodeError as error:
        sys.stderr.write(f"{VARIABLE} can't be read: {error}\n")
        return USAGE
    rest, wanted = without_faults(argv)
    try:
        faults = Faults(wanted)
    except ValueError as error:
        sys.stderr.write(f"--fault: {error}\n")
        return USAGE
    arguments = parse(rest, simulation.rehearsal.version)
    try:
        meeting = meet(arguments.resolved)
    except OSError as error:
        sys.stderr.write(f"SIMULATED: the ranks did not meet at {arguments.resolved.get('dist_init_addr')}: {error}\n")
        return DIED
    if not meeting.is_first:
        return meeting.wait()
    return serve(backend_of(arguments, simulation, faults), arguments, faults)


def simulation_of(environment: Mapping[str, str]) -> Simulation:
    """Raises msgspec.DecodeError (also where a value is out of its bounds)."""
    text = environment.get(VARIABLE)
    simulation = msgspec.json.decode(text, type=Simulation) if text else Simulation()
    return msgspec.structs.replace(simulation, synthetic_length=_synthetic_length(environment.get(SYNTHETIC, "")))


def _synthetic_length(word: str) -> float | None:
    """None where it is not set, or no such number: SGLang then accepts what is right, too."""
    try:
        length = float(word)
    except ValueError:
        return None
    return length if 1 <= length < float("inf") else None


def backend_of(arguments: ServerArguments, simulation: Simulation, faults: Faults = NO_FAULTS) -> SimulatedBackend:
    """The engine that this command line asks for."""
    slow_ratio = faults.numbers.get("slow_steps", 0.0) / 100
    costs = stretched(launched(simulation.rehearsal, random.Random()), 1 + slow_ratio)
    drafting = drafting_of(arguments, simulation)
    return SimulatedBackend(
        facts_of(arguments, costs, drafting),
        CostModel(costs, drafting),
        seed=simulation.seed,
        eos_ratio=costs.eos_ratio,
        load_s=costs.load_s,
        graph_max_batch_size=arguments.cuda_graph_max_bs,
        prefix_cache=not arguments.disable_radix_cache,
        faults=faults,
    )


def drafting_of(arguments: ServerArguments, simulation: Simulation) -> Drafting | None:
    """None without speculation."""
    if arguments.algorithm is None:
        return None
    path = None if arguments.algorithm == LOOKUP else arguments.draft_path
    named = simulation.drafters.get(path) if path else None
    return Drafting(
        algorithm=arguments.algorithm,
        draft_tokens=arguments.num_draft_tokens,
        steps=arguments.num_steps,
        topk=arguments.topk,
        drafter=named.name if named else None,
        kind=drafter_kind(path, named.method if named else None),
        synthetic_length=simulation.synthetic_length,
    )


def facts_of(arguments: ServerArguments, costs: Rehearsal, drafting: Drafting | None) -> EngineFacts:
    """What the front tells of it."""
    return EngineFacts(
        dialect_version=costs.version,
        simulated=True,
        model_path=arguments.model_path,
        served_model_name=arguments.served_model_name,
        resolved=arguments.resolved,
        algorithm=drafting.algorithm if drafting else None,
        draft_tokens=drafting.draft_tokens if drafting else 0,
        steps=drafting.steps if drafting else 0,
        topk=drafting.topk if drafting else 0,
        has_drafter=drafting is not None and drafting.algorithm != LOOKUP,
        graphs=arguments.cuda_graph,
        max_running_requests=arguments.max_running_requests or UNCAPPED,
        context_length=arguments.context_length or costs.context_length,
        capacity_tokens=costs.capacity_tokens,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
