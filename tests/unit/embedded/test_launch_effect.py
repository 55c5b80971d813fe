"""The simulated engine's launch effect: one factor for all times, none by default."""

import math
import random
from statistics import fmean, stdev

import pytest

from specbench.embedded.cost_model import LAUNCH_TIMES, launched
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
