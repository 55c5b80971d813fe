"""The simulated engine's launch effect: one factor for all times, none by default."""

import math
import random
from statistics import fmean, stdev

import pytest

from specbench.embedded.arguments import parse
from specbench.embedded.cost_model import LAUNCH_TIMES, CostModel, launched, stretched
from specbench.embedded.faults import Faults
from specbench.embedded.simulated import Simulation, backend_of
from specbench.suite.rehearsal import Rehearsal


def test_without_it_nothing_changes() -> None:
    assert launched(Rehearsal(), random.Random()) == Rehearsal()


def test_all_times_are_stretched_alike() -> None:
    plain = Rehearsal(launch_sd_ratio=0.05)
    one = launched(plain, random.Random(3))
    factors = [getattr(one, name) / getattr(plain, name) for name in LAUNCH_TIMES]
    assert factors == pytest.approx([factors[0]] * len(factors))
    assert factors[0] != 1
    assert one.load_s == plain.load_s


def test_launches_differ_by_what_was_asked() -> None:
    dice, plain = random.Random(5), Rehearsal(launch_sd_ratio=0.01)
    logs = [math.log(launched(plain, dice).base_step_s / plain.base_step_s) for _ in range(4000)]
    assert stdev(logs) == pytest.approx(0.01, rel=0.05)
    assert abs(fmean(logs)) < 0.001


def test_a_planted_slowdown_stretches_every_time_but_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Rehearsal] = []

    def model(costs: Rehearsal, drafting: object) -> CostModel:
        seen.append(costs)
        return CostModel(costs, None)

    monkeypatch.setattr("specbench.embedded.simulated.CostModel", model)
    plain = Rehearsal(load_s=0.5)
    for words in (["slow_steps:5"], []):
        backend_of(parse(["--model-path", "m"], plain.version), Simulation(rehearsal=plain), Faults(words))
    slow, healthy = seen
    assert healthy == plain
    assert slow == stretched(plain, 1.05)
    assert all(getattr(slow, name) == pytest.approx(1.05 * getattr(plain, name)) for name in LAUNCH_TIMES)
    assert slow.load_s == plain.load_s
