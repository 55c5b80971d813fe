"""Change points: found where they are, and hardly ever where there are none."""

import math
import random

import pytest

from specbench.analysis.history.changes import FEWEST_COUNT, change_points


def noise(count: int, sd: float, seed: int) -> list[float]:
    dice = random.Random(seed)
    return [100 * math.exp(dice.gauss(0, sd)) for _ in range(count)]


@pytest.mark.parametrize("count", [12, 30, 60])
def test_a_quiet_series_has_hardly_ever_one(count: int) -> None:
    """0.5 % by the shuffles; above 4 in 200 would come up once in some 300 such tests."""
    assert sum(bool(change_points(noise(count, 0.02, seed))) for seed in range(200)) <= 4


@pytest.mark.parametrize("at", [5, 20, 35])
def test_a_step_is_found_where_it_is(at: int) -> None:
    series = noise(40, 0.005, 7)
    series[at:] = [0.95 * value for value in series[at:]]
    (found,) = change_points(series)
    assert found.night_index == at
    assert found.change_ratio == pytest.approx(-0.05, abs=0.005)
    assert found.p_ratio <= 0.005


def test_two_steps_are_two() -> None:
    series = noise(60, 0.004, 3)
    series[20:40] = [0.94 * value for value in series[20:40]]
    found = change_points(series)
    assert [one.night_index for one in found] == [20, 40]
    assert [one.change_ratio < 0 for one in found] == [True, False]


def test_a_creeping_loss_that_no_night_shows_is_seen() -> None:
    series = [value * 0.998**night for night, value in enumerate(noise(40, 0.003, 5))]
    assert change_points(series)
    assert all(one.change_ratio < 0 for one in change_points(series))


def test_one_odd_night_is_no_change() -> None:
    series = noise(40, 0.004, 2)
    series[20] *= 0.8
    assert change_points(series) == ()


def test_places_count_nights_without_a_figure() -> None:
    series: list[float | None] = [*noise(20, 0.004, 4)]
    series[10:] = [0.93 * value for value in series[10:] if value]
    series[4:4] = [None, None]
    (found,) = change_points(series)
    assert found.night_index == 12


@pytest.mark.parametrize("series", [[], [None] * 30, [100.0] * 50, [1.0, 2.0] * 4, [0.0] * 20])
def test_too_little_says_nothing(series: list[float | None]) -> None:
    assert change_points(series) == ()


def test_small_shifts_and_short_histories_are_not_worth_a_word() -> None:
    series = noise(40, 0.0005, 1)
    series[20:] = [0.995 * value for value in series[20:]]
    assert change_points(series) == ()
    assert change_points([100.0, 101.0, 100.5, 99.5, 90.0, 90.5, 91.0, 90.2, 90.4][: FEWEST_COUNT - 1]) == ()


def test_the_same_history_gives_the_same_answer() -> None:
    series = noise(30, 0.01, 9)
    series[12:] = [0.985 * value for value in series[12:]]
    assert change_points(series) == change_points(series)
