"""Open-loop schedules: absolute, seeded, with the rate that was asked for."""

import itertools
import statistics
from pathlib import Path

import pytest

from specbench.errors import SpecbenchError
from specbench.execution.schedule import schedule_s, trace_s
from specbench.suite import Arrival, Workload


def moments(arrival: Arrival, seed: int = 0) -> tuple[float, ...]:
    return schedule_s(Workload(name="w", concurrency=(0,), arrival=arrival), seed)


def gaps(arrival: Arrival) -> list[float]:
    return [after - before for before, after in itertools.pairwise(moments(arrival))]


def variation(arrival: Arrival) -> float:
    found = gaps(arrival)
    return statistics.stdev(found) / statistics.mean(found)


def test_a_constant_rate_is_constant() -> None:
    found = moments(Arrival(rate_rps=50.0, process="constant", duration_s=2.0))
    assert len(found) == 100
    assert found == pytest.approx([index / 50 for index in range(1, 101)])


@pytest.mark.parametrize(
    ("process", "burstiness", "expected_variation"),
    [("poisson", 1.0, 1.0), ("gamma", 1.0, 1.0), ("gamma", 0.25, 2.0), ("gamma", 4.0, 0.5)],
)
def test_rate_and_variation_are_those_of_the_process(process: str, burstiness: float, expected_variation: float) -> None:
    arrival = Arrival(rate_rps=20.0, process=process, burstiness=burstiness, request_count=20_000)  # type: ignore[arg-type]
    assert len(moments(arrival)) == 20_000
    assert statistics.mean(gaps(arrival)) == pytest.approx(1 / 20, rel=0.05)
    assert variation(arrival) == pytest.approx(expected_variation, rel=0.05)


def test_the_seed_decides() -> None:
    arrival = Arrival(rate_rps=5.0, duration_s=10.0)
    assert moments(arrival, 1) == moments(arrival, 1)
    assert moments(arrival, 1) != moments(arrival, 2)
    assert list(moments(arrival)) == sorted(moments(arrival))


def test_a_closed_loop_has_no_schedule() -> None:
    assert schedule_s(Workload(name="w"), 0) == ()


def test_a_trace_begins_at_its_first_arrival(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 1500, "input_length": 3}\n\n{"at_s": 1.75}\n2.5\n')
    assert trace_s(path, None) == (0.0, 0.25, 1.0)
    assert trace_s(path, 2) == (0.0, 0.25)
    assert moments(Arrival(trace=str(path))) == (0.0, 0.25, 1.0)


@pytest.mark.parametrize(
    ("text", "count", "sentence"),
    [
        ("1\n{}\n", None, ":2: is no arrival"),
        ("1\ntrue\n", None, ":2: is no arrival"),
        ("1\n{\n", None, ":2: is no arrival"),
        ("\n2\n1\n", None, ":3: goes back in time: 1 s after 2 s"),
        ("", None, "holds no arrival"),
        ("-1\n2\n", None, ":1: lies before the beginning: -1 s"),
        ("1" + 400 * "0", None, ":1: is no arrival"),
    ],
)
def test_a_bad_trace_is_one_sentence(tmp_path: Path, text: str, count: int | None, sentence: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(SpecbenchError, match=sentence):
        trace_s(path, count)


def test_a_lost_trace_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecbenchError, match="the trace can't be read: no such file"):
        trace_s(tmp_path / "none.jsonl", None)
