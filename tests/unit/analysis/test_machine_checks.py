"""Findings about GPUs, logs and addresses: what makes each speak, and what does not."""

from typing import Any

import pytest
from msgspec import structs

from specbench.analysis import Finding
from specbench.analysis.judge import judge_run
from specbench.records import Observation
from specbench.suite import Server
from tests.unit.analysis.runs import request, run, suite, trial, variant

TWO = suite([variant("plain"), variant("other")])
CODES = {
    "gpu_lost",
    "gpu_throttled",
    "foreign_gpu_process",
    "clock_drift",
    "log_disturbed",
    "server_exposed",
    "telemetry_gaps",
}


def sampled(at_s: float, foreign: Any = (), **gpu: Any) -> Observation:
    shown = {"index": 0, "sm_clock_mhz": 1980, "throttle_reasons": [], "lost": False, **gpu}
    return Observation(at_s=at_s, source="telemetry", name="gpus", value={"gpus": [shown], "foreign": list(foreign)})


def during(count: int, **gpu: Any) -> list[Observation]:
    """Inside the one level of a hand-made launch, which lasts 0.3 s."""
    return [sampled(0.3 * place / count, **gpu) for place in range(count)]


def found(plain: list[Observation], other: list[Observation]) -> dict[str, Finding]:
    trials = [trial("plain", [request()], plain), trial("other", [request()], other)]
    return {one.code: one for one in judge_run(run(TWO, trials)).findings if one.code in CODES}


def test_a_quiet_machine_gets_nothing() -> None:
    assert found(during(9), during(9, throttle_reasons=["gpu_idle", "applications_clocks_setting"])) == {}
    assert found([], []) == {}


def test_a_lost_gpu_is_an_error_wherever_it_was_missed() -> None:
    finding = found([], [sampled(70.0, lost=True)])["gpu_lost"]
    assert (finding.severity, finding.variant) == ("error", "other")
    assert "first missed 70 s" in finding.evidence


def test_throttling() -> None:
    hot = found(during(8), [*during(8), *during(2, throttle_reasons=["hw_thermal_slowdown", "sw_power_cap"])])[
        "gpu_throttled"
    ]
    assert (hot.severity, hot.variant) == ("warning", "other")
    assert hot.evidence == "hw_thermal_slowdown 2, sw_power_cap 2 of 10 samples"
    power = found(during(8), during(8, throttle_reasons=["sw_power_cap"]))["gpu_throttled"]
    assert power.severity == "note"


def test_a_moment_of_throttling_and_what_lies_outside_the_load_do_not_count() -> None:
    assert found(during(8), [*during(30), *during(1, throttle_reasons=["hw_slowdown"])]) == {}
    assert found(during(8), [sampled(5.0, throttle_reasons=["hw_slowdown"])]) == {}


def test_a_foreign_process_is_named_once() -> None:
    one = {"pid": 4711, "name": "python3", "user": "ann", "used_bytes": 1, "gpu": 0}
    finding = found(during(3), [sampled(0.1, [one]), sampled(0.2, [one])])["foreign_gpu_process"]
    assert (finding.variant, finding.evidence) == ("other", "process 4711 (python3 of ann) on GPU 0")


def test_clocks_that_drift_between_launches() -> None:
    finding = found(during(6), during(6, sm_clock_mhz=1900))["clock_drift"]
    assert finding.evidence == "median under load: other.launch0 1900 MHz, plain.launch0 1980 MHz"
    assert "clock_drift" not in found(during(6), during(6, sm_clock_mhz=1960))
    assert "clock_drift" not in found(during(6), during(3, sm_clock_mhz=900)), "three samples say nothing"


@pytest.mark.parametrize(("what", "severity"), [("deleted", "note"), ("replaced", "note"), ("emptied", "warning")])
def test_a_disturbed_log(what: str, severity: str) -> None:
    seen = Observation(at_s=1.0, source="log", name="log_disturbed", value={"what": what})
    finding = found([], [seen])["log_disturbed"]
    assert (finding.variant, finding.severity) == ("other", severity)
    assert finding.evidence.startswith(what)


@pytest.mark.parametrize(
    ("host", "exposed"),
    [
        ("127.0.0.1", False),
        ("127.1.2.3", False),
        ("::1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("10.0.0.7", True),
        ("gpu-node-7", True),
    ],
)
def test_a_server_that_others_can_reach(host: str, exposed: bool) -> None:
    other = structs.replace(variant("other"), server=Server(host=host))
    judged = judge_run(run(suite([variant("plain"), other]), [trial("plain", [request()]), trial("other", [request()])]))
    assert [one.variant for one in judged.findings if one.code == "server_exposed"] == (["other"] if exposed else [])


@pytest.mark.parametrize(
    "value", [None, 3, [], {"gpus": 3}, {"gpus": [3, {"lost": "yes", "throttle_reasons": "x", "sm_clock_mhz": True}]}]
)
def test_samples_of_another_shape_are_left_out(value: Any) -> None:
    odd = Observation(at_s=0.1, source="telemetry", name="gpus", value=value)
    assert found([odd], [Observation(at_s=0.1, source="log", name="log_disturbed", value=value)]).keys() <= {"log_disturbed"}


def test_seconds_without_telemetry_are_told() -> None:
    long = [request(chunks=((10.0, 1), (60.0, 9)))]

    def told(*at_s: float) -> list[str]:
        trials = [trial("plain", [request()]), trial("other", long, [sampled(one) for one in at_s])]
        return [one.evidence for one in judge_run(run(TWO, trials)).findings if one.code == "telemetry_gaps"]

    assert told(*(float(second) for second in range(0, 60))) == []
    assert told(*(float(second) for second in [*range(0, 20), *range(45, 60)])) == ["launch 0: 26 s without a sample"]
    assert told() == [], "without any, the environment says why"
