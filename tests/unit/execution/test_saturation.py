"""A sweep ends where its goodput stops growing."""

import pytest
from msgspec import structs

from specbench.execution.saturation import Saturation
from specbench.suite import Arrival, Saturate, Slo, Workload
from specbench.timing import meets
from tests.unit.analysis.runs import request

CHAT = Workload(name="chat", slo=Slo(ttft_s=1.0), saturate=Saturate(max_streams_count=64))


def drive(saturation: Saturation, workload: Workload, good_count: int, bad_count: int = 0) -> float | None:
    """A level of 10 s."""
    for place in range(good_count + bad_count):
        late_s = 0.5 if place < good_count else 2.0
        saturation.take(workload, request(due_s=0.0, chunks=((late_s, 1), (10.0, 9))))
    return saturation.end_level(workload)


def test_it_goes_on_while_goodput_grows_and_ends_when_it_does_not() -> None:
    saturation = Saturation()
    assert drive(saturation, CHAT, 10) == pytest.approx(1.0)
    assert not saturation.is_over(CHAT)
    assert drive(saturation, CHAT, 20) == pytest.approx(2.0)
    assert not saturation.is_over(CHAT)
    assert drive(saturation, CHAT, 20, bad_count=20) == pytest.approx(2.0)
    assert saturation.is_over(CHAT)


def test_a_level_at_which_nothing_keeps_the_objective_ends_it() -> None:
    saturation = Saturation()
    assert drive(saturation, CHAT, 0, bad_count=5) == 0
    assert saturation.is_over(CHAT)


def test_without_a_sweep_nothing_ends_and_without_an_objective_there_is_no_goodput() -> None:
    saturation = Saturation()
    plain = structs.replace(CHAT, saturate=None)
    assert [drive(saturation, plain, count) for count in (9, 1)] == [pytest.approx(0.9), pytest.approx(0.1)]
    assert not saturation.is_over(plain)
    assert drive(saturation, Workload(name="free"), 3) is None


def test_the_rates_of_an_open_loop_are_one_sweep() -> None:
    saturation = Saturation()
    slow, fast = (
        structs.replace(CHAT, name=f"chat-{rate:g}rps", arrival=Arrival(rate_rps=rate, duration_s=9), concurrency=(0,))
        for rate in (0.5, 1.0)
    )
    assert drive(saturation, slow, 5) == pytest.approx(0.5), "never more than was offered"
    drive(saturation, fast, 5, bad_count=5)
    assert saturation.is_over(slow)
    assert saturation.is_over(fast)


def test_what_keeps_an_objective() -> None:
    one = request(chunks=((0.5, 1), (1.5, 10)))
    assert meets(one, Slo(ttft_s=0.5, tpot_s=0.1))
    assert not meets(one, Slo(ttft_s=0.4))
    assert not meets(one, Slo(tpot_s=0.09))
    assert not meets(structs.replace(one, error="reset"), Slo(ttft_s=9))
    assert not meets(structs.replace(one, stepped=True), Slo(ttft_s=9))
    assert meets(request(chunks=((0.5, 1),)), Slo(tpot_s=0.001))
    assert not meets(request(chunks=()), Slo(ttft_s=9))
