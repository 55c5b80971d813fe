"""The time left: from the suite at first, then from what launches really take."""

import pytest

from specbench.plan import Plan, make_plan
from specbench.records import Event, Progress
from specbench.render.remaining import Remaining
from specbench.suite import Model, Server, Suite, Variant, Workload


def plan(launches: int = 2) -> Plan:
    variants = tuple(Variant(name=name, engine="fake", server=Server()) for name in ("plain", "fast"))
    return make_plan(
        Suite(
            name="s",
            path="s",
            model=Model(path="m"),
            variants=variants,
            baseline="plain",
            workloads=(Workload(name="w"),),
            launches=launches,
        )
    )


def progress(done: int) -> Progress:
    return Progress(
        workload="w",
        concurrency=1,
        ended_count=done,
        failed_count=0,
        planned_count=100,
        launch_ended_count=done,
        launch_planned_count=100,
    )


def test_before_anything_the_suite_speaks() -> None:
    one = plan()
    assert Remaining(one, rehearsing=False).left_s == pytest.approx(one.estimate_s)
    assert Remaining(one, rehearsing=True).left_s == pytest.approx(one.estimate_s / 3)


def test_launches_that_ended_speak_for_those_to_come() -> None:
    one = plan()
    found = Remaining(one, rehearsing=False)
    plain, fast, *_ = one.trials
    found.take(Event(kind="launch_done", trial=plain, at_s=100.0))
    assert found.done_count == 1
    assert found.left_s == pytest.approx(300.0)
    found.take(Event(kind="launch_done", trial=fast, at_s=40.0))
    assert found.left_s == pytest.approx(140.0)


def test_a_launch_under_load_speaks_for_itself() -> None:
    one = plan(1)
    found = Remaining(one, rehearsing=False)
    plain, fast = one.trials
    found.take(Event(kind="launch_done", trial=plain, at_s=100.0))
    found.take(Event(kind="ready", trial=fast, at_s=20.0))
    found.take(Event(kind="progress", trial=fast, at_s=30.0, progress=progress(5)))
    assert found.left_s == pytest.approx(70.0)
    found.take(Event(kind="progress", trial=fast, at_s=60.0, progress=progress(50)))
    assert found.left_s == pytest.approx(40.0)
    found.take(Event(kind="progress", trial=fast, at_s=100.0, progress=progress(100)))
    assert found.left_s == 0.0


def test_a_launch_that_takes_longer_than_thought_takes_no_negative_time() -> None:
    one = plan(1)
    found = Remaining(one, rehearsing=False)
    found.take(Event(kind="phase", trial=one.trials[0], at_s=1e6))
    assert found.left_s == pytest.approx(one.estimate_s / 2)
    found.take(Event(kind="note", text="of nobody"))
    assert found.done_count == 0


def test_launches_side_by_side_share_the_time() -> None:
    one = plan()
    found = Remaining(one, rehearsing=False)
    for trial in one.trials:
        found.take(Event(kind="launch", trial=trial))
    assert found.left_s == pytest.approx(one.estimate_s / 4)


def test_a_launch_that_is_begun_again_is_not_done() -> None:
    one = plan(1)
    found = Remaining(one, rehearsing=False)
    plain, _ = one.trials
    found.take(Event(kind="launch", trial=plain))
    found.take(Event(kind="launch_done", trial=plain, at_s=10.0))
    assert found.done_count == 1
    found.take(Event(kind="launch", trial=plain))
    assert found.done_count == 0


def test_launches_that_are_whole_since_before_are_done() -> None:
    one = plan(1)
    found = Remaining(one, rehearsing=False)
    found.take(Event(kind="kept", trial=one.trials[0], at_s=50.0))
    assert found.done_count == 1
    assert found.left_s == pytest.approx(50.0)
