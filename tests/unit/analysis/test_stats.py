"""Student's t, the noncentral t and Holm against published tables."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbench.analysis import stats


@pytest.mark.parametrize(
    ("share", "freedom", "t"),
    [
        (0.975, 1, 12.7062),
        (0.95, 2, 2.91999),
        (0.995, 4, 4.60409),
        (0.99, 9, 2.82144),
        (0.995, 9, 3.24984),
        (0.9975, 9, 3.68966),
        (0.995, 30, 2.75000),
        (0.975, 120, 1.97993),
    ],
)
def test_quantiles_are_those_of_the_tables(share: float, freedom: int, t: float) -> None:
    assert stats.t_quantile(share, freedom) == pytest.approx(t, abs=6e-6 * max(1, t))
    assert stats.t_quantile(1 - share, freedom) == pytest.approx(-t, abs=6e-6 * max(1, t))
    assert stats.t_tail(stats.t_quantile(share, freedom), freedom) == pytest.approx(1 - share, rel=1e-8)


def test_one_degree_of_freedom_is_cauchy() -> None:
    for t in (-3.0, -0.2, 0.0, 0.7, 12.0):
        assert stats.t_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-13)


@pytest.mark.parametrize(
    ("launch_sd", "pairs", "power"),
    [(0.005, 5, 0.86), (0.005, 6, 0.97), (0.0075, 8, 0.93), (0.01, 10, 0.86), (0.015, 20, 0.90), (0.015, 5, 0.11)],
)
def test_power_is_what_simulation_gives(launch_sd: float, pairs: int, power: float) -> None:
    """2 % drop, two-sided 1 %: 8000 trials each, so a digit off."""
    assert stats.power(0.02, launch_sd * math.sqrt(2), pairs, 0.005) == pytest.approx(power, abs=0.015)


def test_power_without_a_shift_is_the_level() -> None:
    for freedom in (2, 5, 19, 60):
        assert stats.power(0.0, 1.0, freedom + 1, 0.005) == pytest.approx(0.005, rel=1e-5)


@pytest.mark.parametrize(("launch_sd", "pairs", "found"), [(0.005, 5, 2.14), (0.005, 8, 1.28), (0.01, 12, 1.87)])
def test_the_detectable_change_is_that_of_the_table(launch_sd: float, pairs: int, found: float) -> None:
    assert 100 * stats.detectable(launch_sd * math.sqrt(2), pairs, 0.005, 0.9) == pytest.approx(found, abs=0.006)


def test_as_many_pairs_as_the_power_needs() -> None:
    needed = stats.pairs_needed(0.02, 0.0075 * math.sqrt(2), 0.005, 0.9)
    assert needed is not None
    assert stats.power(0.02, 0.0075 * math.sqrt(2), needed, 0.005) >= 0.9
    assert stats.power(0.02, 0.0075 * math.sqrt(2), needed - 1, 0.005) < 0.9
    assert stats.pairs_needed(0.0001, 0.01, 0.005, 0.9) is None
    assert stats.pairs_needed(0.0, 0.0, 0.005, 0.9) is None


def test_holm_by_hand() -> None:
    adjusted = stats.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_an_interval_leaves_zero_out_exactly_when_holm_rejects(metrics: list[list[float]]) -> None:
    seen = {str(place): stats.paired([round(one, 6) for one in each]) for place, each in enumerate(metrics)}
    p_values = {name: stats.p_two_sided(one) for name, one in seen.items()}
    adjusted, levels = stats.holm(p_values), stats.holm_alphas(p_values, 0.05)
    for name, one in seen.items():
        low, high = stats.interval(one, levels[name])
        if abs(adjusted[name] - 0.05) > 1e-9:
            assert (low > 0 or high < 0) == (adjusted[name] < 0.05)


def test_equal_differences_leave_no_doubt() -> None:
    same, none = stats.paired([0.01, 0.01, 0.01]), stats.paired([0.0, 0.0, 0.0])
    assert stats.p_two_sided(same) == 0.0
    assert stats.p_two_sided(none) == 1.0
    assert stats.p_above(same, 0.02) == 1.0
    assert stats.p_below(same, 0.02) == 0.0


def test_one_pair_is_no_test() -> None:
    with pytest.raises(ValueError, match="two pairs"):
        stats.paired([0.1])
