"""Suite to plan: which launches, in which order, on which slot. Pure."""

import random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from specbench.suite import Suite, Variant, Warmup, Workload
from specbench.units import Second, counted

REHEARSED_REQUESTS: Final = 4
"""Requests a level of a rehearsal; never fewer than its streams."""
REHEARSED_TOKENS: Final = 32
REHEARSED_STARTUP_S: Final = 2.0
"""A guess, for the estimate: the simulated engine loads no weights."""
REHEARSED_SERVERS: Final = 3
"""Simulated servers side by side: they hold no GPU and little of the CPU."""
REHEARSED_WARMUP: Final = Warmup(request_count=1, max_output_tokens=8)


class Slot(Struct, frozen=True, kw_only=True):
    """The GPUs and ports that one server may hold."""

    gpu_ids: tuple[int, ...] = ()
    """Indices as CUDA counts them; empty on a CPU."""
    port: int = 0
    """0 until it is leased: a free one is bound then."""
    nccl_port: int = 0
    nodes: tuple[str, ...] = ()
    """Names of a cluster's nodes, the one with the HTTP port first; `gpu_ids` are taken on each. Empty on one machine."""
    init_address: str = ""
    """`host:port` where the ranks of several nodes meet; empty on one node."""


class Trial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One variant, launched once: the unit of replication."""

    variant: str
    launch_index: int
    """Counts this variant's launches, from 0."""
    block_index: int
    order_index: int
    """Place in the whole plan, from 0."""
    alone: bool = False
    """`packing: control`: with the machine to itself, beside a launch of the same index that is packed; in no table."""

    @property
    def folder(self) -> str:
        """Name of its folder inside a run."""
        return f"{self.variant}.launch{self.launch_index}" + (".alone" if self.alone else "")


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that `run` will do, before anything is done."""

    suite: Suite
    trials: tuple[Trial, ...]
    estimate_s: Second
    """From the suite's `expected`; only a guess."""


def make_plan(suite: Suite) -> Plan:
    """Blocks of one launch a variant; every second block runs in reverse (ABBA), order seeded inside a pair of blocks.

    The first block keeps the file's order, so that a single launch runs as written. Packed, a block begins with the
    widest servers, so that the narrow ones fill what is left. `packing: control` adds to each block the same launches
    alone, of variants that leave room for others.
    """
    trials: list[Trial] = []
    order = list(suite.variants)
    dice = random.Random(suite.seed)
    for block_index in range(suite.launches):
        if block_index and block_index % 2 == 0:
            dice.shuffle(order)
        block = order if suite.packing == "off" else sorted(order, key=lambda one: -one.gpu_count)
        block = block if block_index % 2 == 0 else block[::-1]
        alike = [variant for variant in block if controlled(suite, variant)]
        for variant, alone in [*((one, False) for one in block), *((one, True) for one in alike)]:
            trials.append(
                Trial(
                    variant=variant.name,
                    launch_index=block_index,
                    block_index=block_index,
                    order_index=len(trials),
                    alone=alone,
                )
            )
    seconds = sum(launch_estimate_s(suite, suite.variant(trial.variant)) for trial in trials)
    return Plan(suite=suite, trials=tuple(trials), estimate_s=seconds)


def controlled(suite: Suite, variant: Variant) -> bool:
    """Whether it is launched alone as well: others could run beside it."""
    return suite.packing == "control" and 2 * variant.gpu_count <= suite.hardware.gpu_count


def rehearse(suite: Suite, full: bool, launches: int = 1) -> tuple[Suite, str]:
    """The suite as a rehearsal runs it, and a sentence that says how its load was shrunk. `launches` unless `full`."""
    suite = replace(suite, expected=replace(suite.expected, startup_s=REHEARSED_STARTUP_S))
    pace = f"{REHEARSED_SERVERS} servers side by side" if suite.packing == "off" else "servers packed on simulated GPUs"
    pace = "servers in jobs of Slurm" if suite.launcher == "slurm" else pace
    if full:
        return suite, f"the whole load, {pace}"
    workloads = tuple(
        replace(
            workload,
            request_count=REHEARSED_REQUESTS,
            arrival=workload.arrival and replace(workload.arrival, duration_s=None, request_count=REHEARSED_REQUESTS),
            max_output_tokens=min(workload.max_output_tokens, REHEARSED_TOKENS),
        )
        for workload in suite.workloads
    )
    launches_text = counted(launches, "launch")
    sentence = (
        f"{pace} and a shrunk load: {launches_text} a variant, {REHEARSED_REQUESTS} "
        f"requests a level (never fewer than streams), at most {REHEARSED_TOKENS} output tokens, warm-up of "
        f"{REHEARSED_WARMUP.request_count} request with {REHEARSED_WARMUP.max_output_tokens} tokens"
    )
    return replace(suite, workloads=workloads, warmup=REHEARSED_WARMUP, launches=launches), sentence


def planned_slot(suite: Suite, variant: Variant) -> Slot:
    """The GPUs a variant's server gets on an otherwise free machine; none where the suite runs on the CPU."""
    if suite.hardware.gpu_count == 0:
        return Slot()
    return Slot(gpu_ids=tuple(range(variant.gpu_count // nodes_needed(suite, variant))))


def nodes_needed(suite: Suite, variant: Variant) -> int:
    """Nodes of a cluster that its server spans; 1 on one machine."""
    if suite.launcher == "local" or suite.hardware.gpu_count == 0:
        return 1
    return -(-variant.gpu_count // suite.slurm.node_gpu_count)


def launch_estimate_s(suite: Suite, variant: Variant) -> Second:
    """Start-up plus every level, each stream at the expected rate per user."""
    del variant  # one guess serves all variants; a measured start-up time would be a better one
    load_s = sum(
        _level_estimate_s(suite, workload, concurrency)
        for workload in suite.workloads
        for concurrency in workload.concurrency
    )
    return suite.expected.startup_s + load_s


def _level_estimate_s(suite: Suite, workload: Workload, concurrency: int) -> Second:
    answer_s = workload.max_output_tokens / suite.expected.per_user_tps
    if workload.arrival is not None:
        return workload.arrival.length_s + answer_s
    return -(-workload.level_request_count(concurrency) // concurrency) * answer_s
