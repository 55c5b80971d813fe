"""How long a run still takes, from what its launches took so far."""

from statistics import fmean
from typing import Final

from specbench.plan import REHEARSED_SERVERS, Plan, Trial, launch_estimate_s
from specbench.records import Event
from specbench.units import Second

TELLING_RATIO: Final = 0.1
"""Share of a launch's requests from which on its own speed tells when it ends."""


class Remaining:
    """Takes every event. Before a launch has ended, the suite's own estimate stands for it."""

    def __init__(self, plan: Plan, rehearsing: bool) -> None:
        self._plan = plan
        self._side_by_side_count = REHEARSED_SERVERS if rehearsing else 1
        """Until more have been seen: packing and jobs run as many as there is room for."""
        self._running: set[Trial] = set()
        self._ended_s: dict[Trial, Second] = {}
        self._at_s: dict[Trial, Second] = {}
        self._ready_s: dict[Trial, Second] = {}
        self._done_ratio: dict[Trial, float] = {}

    def take(self, event: Event) -> None:
        """In the order in which they come."""
        if event.trial is None:
            return
        self._at_s[event.trial] = event.at_s
        if event.kind == "launch":
            self._begin(event.trial)
        elif event.kind == "ready":
            self._ready_s[event.trial] = event.at_s
        elif event.kind in ("launch_done", "kept"):
            self._ended_s[event.trial] = event.at_s
            self._running.discard(event.trial)
        if event.progress is not None and event.progress.launch_planned_count:
            self._done_ratio[event.trial] = event.progress.launch_ended_count / event.progress.launch_planned_count

    def _begin(self, trial: Trial) -> None:
        """Perhaps again, when it was cut off before."""
        self._ended_s.pop(trial, None)
        self._done_ratio.pop(trial, None)
        self._running.add(trial)
        self._side_by_side_count = max(self._side_by_side_count, len(self._running))

    @property
    def done_count(self) -> int:
        """Launches that have ended."""
        return len(self._ended_s)

    @property
    def left_s(self) -> Second:
        """Of the whole run, a guess."""
        open_ones = [trial for trial in self._plan.trials if trial not in self._ended_s]
        lanes_count = max(1, min(self._side_by_side_count, len(open_ones)))
        alone_s = sum(self._launch_left_s(trial) for trial in open_ones if trial.alone)
        return alone_s + sum(self._launch_left_s(trial) for trial in open_ones if not trial.alone) / lanes_count

    def _launch_left_s(self, trial: Trial) -> Second:
        done, ready_s = self._done_ratio.get(trial, 0.0), self._ready_s.get(trial)
        at_s = self._at_s.get(trial, 0.0)
        if done >= TELLING_RATIO and ready_s is not None:
            return (at_s - ready_s) * max(0.0, 1 - done) / done
        return max(0.0, self._expected_s(trial) - at_s)

    def _expected_s(self, trial: Trial) -> Second:
        """As the same variant's launches took, else as any did, else as the suite says."""
        same = [seconds for one, seconds in self._ended_s.items() if one.variant == trial.variant]
        if same or self._ended_s:
            return fmean(same or self._ended_s.values())
        return launch_estimate_s(self._plan.suite, self._plan.suite.variant(trial.variant))
