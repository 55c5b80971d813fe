"""How far a launch is: counts, speed and acceptance of the level that runs."""

import pytest
from msgspec.structs import replace

from specbench.datasets import Prompt
from specbench.execution.bench import Bench
from specbench.execution.gauge import FRESH_S, Gauge
from specbench.execution.load import Level
from specbench.plan import make_plan
from specbench.records import Event, Observation
from specbench.suite import Model, Server, Suite, Variant, Workload
from tests.unit.analysis.runs import request

WORKLOAD = Workload(name="chat", concurrency=(2,), request_count=8)
PROMPTS = tuple(Prompt(id=f"p{place}", category="chat", turns=("hello",)) for place in range(4))
LEVEL = Level(workload=WORKLOAD, concurrency=2, prompts=PROMPTS)


class Watched:
    """A gauge with a clock that is set by hand."""

    def __init__(self) -> None:
        variant = Variant(name="plain", engine="fake", server=Server())
        suite = Suite(
            name="s", path="s", model=Model(path="m"), variants=(variant,), baseline="plain", workloads=(WORKLOAD,)
        )
        plan = make_plan(suite)
        self.now_s = 10.0
        self.events: list[Event] = []
        self.gauge = Gauge(Bench(plan=plan, on_event=self.events.append), plan.trials[0], lambda: self.now_s)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def decode(at_s: float, tps: float, length: float) -> Observation:
    return Observation(at_s=at_s, source="log", name="decode", value={"gen_throughput_tps": tps, "accept_length": length})


def test_before_the_load_there_is_nothing_to_tell(watched: Watched) -> None:
    watched.gauge.tell_progress()
    assert watched.events[-1].progress is None


def test_it_counts_the_level_and_the_launch(watched: Watched) -> None:
    gauge = watched.gauge
    gauge.begin(replace(LEVEL, warmup=True, concurrency=1))
    gauge.take(request(0, drafts=(3, 2)))
    assert gauge.text() == "warm-up: 1/4"
    gauge.begin(LEVEL)
    for place, error in enumerate([None, "refused", "late"]):
        gauge.take(replace(request(place, drafts=(3, 2)), error=error, output_tokens=30))
    watched.now_s = 15.0
    gauge.tell_progress()
    event = watched.events[-1]
    assert (event.kind, event.text, event.at_s) == ("progress", "chat c=2: 3/4, 2 failed", 15.0)
    assert event.progress is not None
    assert (event.progress.launch_ended_count, gauge.counts, gauge.first_error) == (4, (3, 2, 4), "refused")
    assert event.progress.output_tps == pytest.approx(90 / 5)
    verify, correct = (
        sum(getattr(request(0, drafts=(3, 2)), name) for _ in range(3)) for name in ("verify_count", "correct_tokens")
    )
    assert event.progress.accept_length == pytest.approx(1 + correct / verify)
    assert [one.kind for one in watched.events[:-1]] == ["request"] * 4


def test_the_servers_word_counts_while_it_is_fresh_and_of_this_level(watched: Watched) -> None:
    gauge = watched.gauge
    gauge.see(decode(9.0, 1.0, 9.0))
    gauge.begin(LEVEL)
    reading = gauge.reading(10.5)
    assert reading is not None
    assert (reading.output_tps, reading.accept_length) == (None, None)
    gauge.see(decode(12.0, 400.0, 2.5))
    reading = gauge.reading(12.5)
    assert reading is not None
    assert (reading.output_tps, reading.accept_length) == (400.0, 2.5)
    late = gauge.reading(12.0 + FRESH_S)
    assert late is not None
    assert late.output_tps is None


def test_gpus_are_told_with_every_event(watched: Watched) -> None:
    gauge, sample = watched.gauge, [{"index": 0, "power_w": 500.0}]
    gauge.gpu_ids = (0,)
    gauge.begin(LEVEL)
    gauge.see(Observation(at_s=11.0, source="telemetry", name="gpus", value={"gpus": sample, "foreign": []}))
    gauge.tell_progress()
    assert watched.events[-1].gpu_ids == (0,)
    assert watched.events[-1].progress is not None
    assert watched.events[-1].progress.gpus == sample
