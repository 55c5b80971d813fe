"""When a sweep has seen enough: its goodput, requests a second within the objective, has stopped growing."""

from typing import Final

from specbench.records import RequestRecord
from specbench.suite import Workload
from specbench.timing import meets, no_shorter_s
from specbench.units import PerSecond

GROWTH_RATIO: Final = 0.05
"""A level must beat the best before it by so much for the next one to be driven."""


class Saturation:
    """Follows the levels of one launch."""

    def __init__(self) -> None:
        self._best_rps: dict[str, PerSecond] = {}
        self._over: set[str] = set()
        self._good_count = 0
        self._arrivals_count = 0
        self._begin_s, self._end_s = float("inf"), 0.0

    def is_over(self, workload: Workload) -> bool:
        """Whether the rest of its sweep is not worth driving."""
        return workload.sweep_name in self._over

    def take(self, workload: Workload, request: RequestRecord) -> None:
        """A measured request of the level that runs."""
        if workload.slo is not None and not request.warmup:
            self._good_count += meets(request, workload.slo)
            self._arrivals_count += request.turn_index == 0
            self._begin_s = min(self._begin_s, request.due_s)
            self._end_s = max(self._end_s, request.done_s)

    def end_level(self, workload: Workload) -> PerSecond | None:
        """Its goodput; None where no objective is stated or nothing came back."""
        rate_rps = workload.arrival.rate_rps if workload.arrival else None
        good_count, wall_s = self._good_count, no_shorter_s(self._end_s - self._begin_s, self._arrivals_count, rate_rps)
        self._good_count, self._arrivals_count, self._begin_s, self._end_s = 0, 0, float("inf"), 0.0
        if workload.slo is None or wall_s <= 0:
            return None
        goodput_rps = good_count / wall_s
        best_rps = self._best_rps.get(workload.sweep_name, 0.0)
        if workload.saturate is not None and goodput_rps <= best_rps * (1 + GROWTH_RATIO):
            self._over.add(workload.sweep_name)
        self._best_rps[workload.sweep_name] = max(best_rps, goodput_rps)
        return goodput_rps
