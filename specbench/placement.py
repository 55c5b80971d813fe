"""Which GPUs a launch gets, and which launch is next: the rules of packing. Pure.

The runner follows them as launches end, and `plan` follows them over the estimate, so that both tell the same.
"""

import heapq
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from specbench.plan import Plan, Trial, launch_estimate_s, nodes_needed, planned_slot
from specbench.suite import Suite
from specbench.units import Second


class GpuPlace(NamedTuple):
    """A GPU and its side of the machine."""

    gpu_id: int
    numa_node: int = 0
    """0 where it is not known: all are near then."""


class Floor:
    """The GPUs of one machine, and which of them are held. Never gives one twice."""

    def __init__(self, places: Collection[GpuPlace]) -> None:
        self._order = [one.gpu_id for one in sorted(places, key=lambda one: (one.numa_node, one.gpu_id))]
        """GPUs of one NUMA node stand together, so a group of neighbours is near wherever the machine allows it."""
        self._held: set[int] = set()
        self._poisoned: set[int] = set()
        self._last: dict[str, tuple[int, ...]] = {}
        """What each launch held, by its name."""

    @property
    def usable(self) -> tuple[int, ...]:
        """GPUs that work, held or not."""
        return tuple(index for index in self._order if index not in self._poisoned)

    @property
    def is_empty(self) -> bool:
        """It never had a GPU: launches run on the CPU."""
        return not self._order

    @property
    def held(self) -> frozenset[int]:
        """GPUs that launches hold now."""
        return frozenset(self._held)

    def hold(self, count: int, turn: int, shunned: Collection[int] = (), twins: str = "") -> tuple[int, ...] | None:
        """Takes `count` free GPUs; None when there are none just now. Groups are aligned, all of one kind, and `turn`
        says with which to begin, so that an arm's launches rotate over them. `shunned`: somebody else holds these.
        `twins`: launches of one name get the same GPUs, if these are free, so that only their neighbours differ."""
        if count == 0:
            return ()
        groups = self._groups(count)
        start = turn % max(len(groups), 1)
        wished = [group for group in groups if group == self._last.get(twins)]
        taken = self._held | set(shunned)
        chosen = next((group for group in wished + groups[start:] + groups[:start] if not taken & set(group)), None)
        self._held |= set(chosen or ())
        self._last |= {twins: chosen} if twins and chosen else {}
        return chosen

    def release(self, gpu_ids: Collection[int]) -> None:
        """Gives them back."""
        self._held -= set(gpu_ids)

    def poison(self, gpu_ids: Collection[int]) -> None:
        """They are given to nobody any more."""
        self._poisoned |= set(gpu_ids)

    def fits(self, count: int) -> bool:
        """Whether so many could ever be held again."""
        return count <= len(self.usable)

    def _groups(self, count: int) -> list[tuple[int, ...]]:
        """Aligned groups; where GPUs were poisoned, what is left over of broken groups makes further ones."""
        whole = [tuple(self._order[start : start + count]) for start in range(0, len(self._order) - count + 1, count)]
        sound = [group for group in whole if not self._poisoned & set(group)]
        rest = [index for index in self.usable if not any(index in group for group in sound)]
        return sound + [tuple(rest[start : start + count]) for start in range(0, len(rest) - count + 1, count)]


class Start(NamedTuple):
    """A launch that may begin now."""

    trial: Trial
    gpu_ids: tuple[int, ...]


def next_start(
    suite: Suite,
    waiting: Sequence[Trial],
    floor: Floor,
    running: Collection[Trial],
    width_count: int,
    shunned: Collection[int] = (),
) -> Start | None:
    """The first in the plan's order that there is room for; its GPUs are held then. None: something must end first.

    A later launch may go before one that waits for GPUs, but only out of the same block or the next. One that is to be
    alone waits for the machine to be empty, and nothing goes before it. `width_count`: servers at once, at most. A floor
    without GPUs is a CPU's.
    """
    if not waiting or len(running) >= width_count or any(one.alone for one in running):
        return None
    for trial in waiting:
        if trial.block_index > waiting[0].block_index + 1:
            return None
        if trial.alone and (running or trial is not waiting[0]):
            return None
        count, twins = 0 if floor.is_empty else gpus_of(suite, trial), f"{trial.variant} {trial.launch_index}"
        gpu_ids = floor.hold(count, turn_of(suite, trial), shunned, twins)
        if gpu_ids is not None:
            return Start(trial, gpu_ids)
    return None


def gpus_of(suite: Suite, trial: Trial) -> int:
    """GPUs that a launch holds on one node; 0 where the suite runs on the CPU."""
    return len(planned_slot(suite, suite.variant(trial.variant)).gpu_ids)


def turn_of(suite: Suite, trial: Trial) -> int:
    """Packed, the variant's place in the suite, moved on by one each block; else all launches take the same GPUs."""
    if suite.packing == "off":
        return 0
    return trial.block_index + [variant.name for variant in suite.variants].index(trial.variant)


def job_trials(suite: Suite, trials: Sequence[Trial]) -> tuple[tuple[Trial, ...], ...]:
    """What each of a cluster's jobs runs, one after another: the arms of a block that need the same GPUs, which so share
    hardware, or a single launch."""
    if suite.slurm.allocation == "launch":
        return tuple((trial,) for trial in trials)
    jobs: dict[tuple[int, int, int], list[Trial]] = {}
    for trial in trials:
        variant = suite.variant(trial.variant)
        jobs.setdefault((trial.block_index, nodes_needed(suite, variant), gpus_of(suite, trial)), []).append(trial)
    return tuple(map(tuple, jobs.values()))


class Planned(Struct, frozen=True, kw_only=True):
    """A launch in the forecast."""

    trial: Trial
    gpu_ids: tuple[int, ...] = ()
    start_s: Second
    """Since the run began."""
    end_s: Second


def forecast(plan: Plan, gpus_count: int, width_count: int) -> tuple[Planned, ...]:
    """When each launch would run and on which GPUs, were the estimate right; in the plan's order."""
    floor = Floor([GpuPlace(index) for index in range(gpus_count)])
    waiting, ends, now_s = list(plan.trials), list[tuple[Second, int, Planned]](), 0.0
    found: list[Planned] = []
    while waiting:
        for start in _starts(plan.suite, waiting, floor, [one.trial for _, _, one in ends], width_count):
            length_s = launch_estimate_s(plan.suite, plan.suite.variant(start.trial.variant))
            planned = Planned(trial=start.trial, gpu_ids=start.gpu_ids, start_s=now_s, end_s=now_s + length_s)
            found.append(planned)
            heapq.heappush(ends, (planned.end_s, start.trial.order_index, planned))
        if not ends:  # wider than the machine: `run` refuses it
            return ()
        now_s, _, ended = heapq.heappop(ends)
        floor.release(ended.gpu_ids)
    return tuple(sorted(found, key=lambda one: one.trial.order_index))


def _starts(suite: Suite, waiting: list[Trial], floor: Floor, running: list[Trial], width_count: int) -> Iterator[Start]:
    """All that may begin at one moment; taken out of `waiting`."""
    while (start := next_start(suite, waiting, floor, running, width_count)) is not None:
        waiting.remove(start.trial)
        running.append(start.trial)
        yield start
