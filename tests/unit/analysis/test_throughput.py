"""The window in which the offered concurrency was held."""

import pytest
from msgspec import structs

from specbench.analysis.cells import Cell, Load
from specbench.analysis.throughput import held_window_s, offered_window_s, steady_tps, tokens_within
from tests.unit.analysis.runs import request


def test_window_spans_the_gaps_between_a_streams_requests() -> None:
    requests = [
        request(0, due_s=0.0, chunks=((2.0, 1),)),
        request(1, due_s=1.0, chunks=((4.0, 1),)),
        request(2, due_s=2.001, chunks=((1.0, 1),)),
        request(3, due_s=6.0, chunks=((1.0, 1),)),
    ]
    assert held_window_s(requests, 2) == pytest.approx((1.0, 3.001))
    assert held_window_s(requests, 3) is None
    assert held_window_s([], 1) is None


def test_a_chunk_is_spread_over_the_gap_before_it() -> None:
    one = request(chunks=((1.0, 1), (2.0, 4), (3.0, 4)))
    assert tokens_within(one, 0.0, 9.0) == pytest.approx(9)
    assert tokens_within(one, 1.5, 2.25) == pytest.approx(2 + 1)
    assert tokens_within(one, 1.0, 2.0) == pytest.approx(4)
    assert tokens_within(one, 5.0, 9.0) == 0


def test_without_counts_by_chunk_the_total_is_spread_evenly() -> None:
    one = request(chunks=((1.0, 1), (2.0, 4), (3.0, 4)), chunk_tokens=())
    assert tokens_within(one, 2.0, 3.0) == pytest.approx(3)


def test_steady_tps_leaves_the_tail_out() -> None:
    long = request(0, concurrency=2, chunks=((0.0, 0), (10.0, 100)))
    short = request(1, concurrency=2, chunks=((0.0, 0), (2.0, 40)))
    cell = Cell(workload="chat", concurrency=2, loads=(Load(requests=(long, short)),))
    assert steady_tps(cell) == pytest.approx((20 + 40) / 2)


def test_steady_tps_is_none_when_the_concurrency_was_never_held() -> None:
    cell = Cell(workload="chat", concurrency=8, loads=(Load(requests=(request(),)),))
    assert steady_tps(cell) is None


def test_the_steady_window_of_an_open_loop_begins_when_the_server_is_not_empty_and_ends_with_the_last_arrival() -> None:
    requests = [request(n, concurrency=0, due_s=float(n), chunks=((0.5, 1), (1.5, 10))) for n in range(5)]
    cell = Cell(workload="chat", concurrency=0, loads=(Load(requests=tuple(requests)),))
    assert offered_window_s(requests) == pytest.approx((1.5, 4.0))
    assert steady_tps(cell) == pytest.approx((2 * 10 + 5 + 2 * 1) / 2.5)  # two whole gaps, half of a third, two firsts
    assert offered_window_s(requests[:1]) is None


def test_a_request_during_which_the_clock_was_set_gives_no_steady_rate() -> None:
    one = request(0, concurrency=1, chunks=((0.0, 0), (2.0, 40)))
    cell = Cell(workload="chat", concurrency=1, loads=(Load(requests=(one, structs.replace(one, stepped=True))),))
    assert steady_tps(cell) is None
