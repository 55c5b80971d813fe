"""Launches of one server: their spread, and how many of them see what."""

import math
from pathlib import Path
from statistics import stdev

import pytest

from specbench.analysis.cells import suite_of
from specbench.analysis.comparing import Options
from specbench.analysis.comparing.calibrate import Calibration, calibrated, enough_launches, outlooks
from specbench.analysis.comparing.compare import compare_runs
from specbench.analysis.comparing.launches import read_sides
from specbench.errors import SpecbenchError
from specbench.streams import open_result
from tests.unit.analysis.comparing.bed import ALIKE, write_result


def calibration_of(folder: Path) -> Calibration:
    result = open_result(folder)
    (sides,) = read_sides([(result, suite_of(result), ["baseline"])])
    return calibrated(sides["baseline"])


def test_the_spread_is_that_of_the_launches(tmp_path: Path) -> None:
    found = calibration_of(write_result(tmp_path / "run", {"baseline": (*ALIKE, 1.002)}))
    spreads = {one.metric: one.launch_sd_ratio for one in found.spreads}
    assert set(spreads) == {"output_tps", "ttft_p50_s", "tpot_p50_s", "ttft_p99_s", "tpot_p99_s"}
    assert spreads["tpot_p50_s"] == pytest.approx(stdev([math.log(one) for one in (*ALIKE, 1.002)]))


def test_more_launches_see_less_and_enough_is_the_first(tmp_path: Path) -> None:
    found = outlooks(calibration_of(write_result(tmp_path / "run", {"baseline": ALIKE})))
    sizes = [one.detectable_ratio["tpot_p50_s"] for one in found]
    assert [one.pair_count for one in found] == list(range(3, 21))
    assert sizes == sorted(sizes, reverse=True)
    enough = enough_launches(found)["tpot_p50_s"]
    assert enough is not None
    assert sizes[enough - 3] <= 0.02 < sizes[enough - 4]
    assert enough_launches(found, margin=1e-6)["tpot_p50_s"] is None


def test_compare_rests_on_it_only_where_it_knows_more(tmp_path: Path) -> None:
    many = calibration_of(write_result(tmp_path / "many", {"baseline": (*ALIKE, *(1.0001 * one for one in ALIKE))}))
    noisy = tuple(pace * (1 + 0.02 * sign) for pace, sign in zip(ALIKE, (1, -1, 0.5, -0.5, 0), strict=True))
    a = open_result(write_result(tmp_path / "a", {"baseline": ALIKE}))
    b = open_result(write_result(tmp_path / "b", {"baseline": noisy}, started_utc="2026-11-29T02:00:00Z"))
    told = {
        name: {one.change.metric: one for one in compare_runs(a, b, Options(), known).variants[0].answers}["output_tps"]
        for name, known in {"none": None, "many": many, "few": calibration_of(tmp_path / "a")}.items()
    }
    assert told["many"].sd_source == "calibration"
    assert told["few"].sd_source == told["none"].sd_source == "these launches"
    many_count, none_count = (told[name].launches_needed_count for name in ("many", "none"))
    assert many_count is not None
    assert none_count is not None
    assert many_count < none_count


def test_two_launches_are_no_calibration(tmp_path: Path) -> None:
    with pytest.raises(SpecbenchError, match="2 launches of 'baseline' where 3 are the least"):
        calibration_of(write_result(tmp_path / "run", {"baseline": ALIKE[:2]}))
