"""The definitions, on requests whose figures are known."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbench.analysis.cells import Cell, Load, pooled
from specbench.analysis.metrics import METRICS, accept_source, quantile, tpot_source
from specbench.dialects import DecodeSample
from specbench.records import RequestRecord
from specbench.timing import tpot_s, ttft_s
from tests.unit.analysis.runs import request, steady_requests


def cell(*requests: RequestRecord, proposed_tokens: int | None = 3, samples: tuple[DecodeSample, ...] = ()) -> Cell:
    load = Load(requests=requests, samples=samples)
    return Cell(workload="chat", concurrency=1, loads=(load,), proposed_tokens=proposed_tokens)


def of(name: str, one: Cell) -> float | None:
    return METRICS[name].of(one)


def test_quantiles_are_linear_between_order_statistics() -> None:
    assert quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.99) == pytest.approx(3.97)
    assert quantile([7.0], 0.99) == 7.0
    assert quantile([], 0.5) is None


def test_ttft_counts_from_due_not_from_sent() -> None:
    assert ttft_s(request(due_s=10.0, sent_s=10.05)) == pytest.approx(0.1)
    assert ttft_s(request(chunks=())) is None


def test_tpot_counts_the_tokens_after_the_first_chunk() -> None:
    assert tpot_s(request(chunks=((0.1, 3), (0.2, 2), (0.5, 2)))) == pytest.approx(0.4 / 4)


def test_a_request_during_which_the_clock_was_set_gives_tokens_and_no_times() -> None:
    both = cell(request(), request(1, stepped=True, chunks=((5.0, 1), (9.0, 2), (9.5, 2)), due_s=0.0, done_s=1.0))
    assert of("ttft_p99_s", both) == pytest.approx(0.1)
    assert of("tpot_p99_s", both) == of("tpot_p50_s", cell(request()))
    assert of("step_p99_s", both) == of("step_p99_s", cell(request()))
    assert of("output_tps", both) == pytest.approx(10 / 1.0)


def test_tpot_with_one_chunk_or_no_count_is_none() -> None:
    assert tpot_s(request(chunks=((0.1, 5),))) is None
    assert tpot_s(request(chunk_tokens=(), output_tokens=None)) is None


def test_tpot_marks_the_assumption_where_tokens_are_counted_at_the_end() -> None:
    late = request(chunk_tokens=(), output_tokens=5, token_source="usage_at_end")
    assert tpot_s(late) == pytest.approx(0.2 / 4)
    assert tpot_source(cell(request(), late)) == "assumed_first_token"
    assert tpot_source(cell(request())) == "chunks"
    assert tpot_source(cell(request(chunks=()))) == "none"


def test_output_tps_is_a_ratio_of_totals_over_launches() -> None:
    fast = Load(requests=(request(chunks=((0.5, 5), (1.0, 5))),))
    slow = Load(requests=(request(chunks=((1.0, 5), (4.0, 5))),))
    both = Cell(workload="chat", concurrency=1, loads=(fast, slow))
    assert of("output_tps", both) == pytest.approx(20 / 5)


def test_wall_time_runs_from_first_due_to_last_done() -> None:
    requests = (request(due_s=1.0, sent_s=2.0), request(1, due_s=2.0, chunks=((0.1, 5), (3.0, 5))))
    assert of("output_tps", cell(*requests)) == pytest.approx(15 / 4)


def test_tps_is_none_as_soon_as_one_request_has_no_count() -> None:
    unknown = request(1, chunk_tokens=(), output_tokens=None)
    assert of("output_tps", cell(request(), unknown)) is None
    assert of("steady_tps", cell(request(), unknown)) is None


def test_a_failed_request_gives_no_figure_but_its_own() -> None:
    bad = request(1, chunks=((0.05, 9),), error="timed out")
    both = cell(request(), bad)
    assert of("failed_count", both) == 1
    assert of("ttft_p50_s", both) == pytest.approx(0.1)
    assert of("output_tps", both) == pytest.approx(5 / 0.3)


def test_per_user_tps_is_the_inverse_of_tpot() -> None:
    assert of("per_user_tps", cell(request(chunks=((0.1, 1), (0.6, 10))))) == pytest.approx(20)


def test_step_time_is_the_gap_between_chunks() -> None:
    assert of("step_p50_s", cell(request(chunks=((0.1, 1), (0.2, 2), (0.5, 2))))) == pytest.approx(0.2)


def test_accept_length_is_pooled_never_a_mean_of_ratios() -> None:
    short, long = request(drafts=(0, 10)), request(1, drafts=(180, 90))
    assert of("accept_length", cell(short, long)) == pytest.approx(1 + 180 / 100)
    assert of("accept_rate_ratio", cell(short, long)) == pytest.approx(1.8 / 3)


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(0, 3)), min_size=1, max_size=30))
def test_pooled_length_lies_between_the_lengths_it_pools(counts: list[tuple[int, int]]) -> None:
    requests = [request(drafts=(steps * accepted, steps)) for steps, accepted in counts]
    length = of("accept_length", cell(*requests))
    assert length is not None
    assert 1 + min(one for _, one in counts) - 1e-9 <= length <= 1 + max(one for _, one in counts) + 1e-9


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 99)), min_size=2, max_size=10), st.integers(1, 9))
def test_pooling_does_not_depend_on_how_requests_are_grouped(counts: list[tuple[int, int]], cut: int) -> None:
    requests = [request(drafts=(correct, steps)) for steps, correct in counts]
    at_once = cell(*requests)
    halves = pooled([cell(*requests[:cut]), cell(*requests[cut:])])
    assert of("accept_length", at_once) == of("accept_length", halves)


@pytest.mark.parametrize(
    ("fields", "length"),
    [
        ({"correct_tokens": 6, "verify_count": 4}, 2.5),
        ({"accept_histogram": (1, 0, 3), "verify_count": 4}, 2.5),
        ({"verify_count": 4, "output_tokens": 11}, 2.5),
        ({"verify_count": 0, "output_tokens": 1}, None),
        ({}, None),
    ],
)
def test_correct_drafts_come_from_the_best_count_there_is(fields: dict[str, Any], length: float | None) -> None:
    assert of("accept_length", cell(request(**fields))) == length


def test_without_counters_the_log_speaks() -> None:
    samples = tuple(DecodeSample(accept_length=length, running_requests=run) for length, run in ((2.0, 1), (3.0, 3)))
    one = cell(request(), samples=samples)
    assert of("accept_length", one) == pytest.approx(2.75)
    assert accept_source(one) == "log"
    assert accept_source(cell(request(drafts=(1, 1)), samples=samples)) == "requests"
    assert accept_source(cell(request())) == "none"


def test_graph_ratio_counts_the_lines_that_say_something() -> None:
    samples = tuple(DecodeSample(cuda_graph=one) for one in (True, True, False, None))
    assert of("graph_ratio", cell(request(), samples=samples)) == pytest.approx(2 / 3)
    assert of("graph_ratio", cell(request())) is None


def test_every_metric_gives_none_or_zero_of_nothing() -> None:
    nothing = Cell(workload="chat", concurrency=1, loads=())
    assert {name: metric.of(nothing) for name, metric in METRICS.items()} == {
        **dict.fromkeys(METRICS),
        "failed_count": 0,
    }


def test_steady_streams_are_as_fast_as_their_steps() -> None:
    requests = steady_requests("chat", 4, step_s=0.1, tokens_per_step=2)
    one = Cell(workload="chat", concurrency=4, loads=(Load(requests=tuple(requests)),))
    assert of("output_tps", one) == pytest.approx(4 * 41 / 2.1)
    assert of("steady_tps", one) == pytest.approx(4 * 41 / 2.1)
    assert of("per_user_tps", one) == pytest.approx(20)


def test_a_request_for_which_nothing_was_drafted_had_a_step_a_token() -> None:
    drafted = request(drafts=(6, 4), proposed_tokens=9)
    plain = request(1, chunks=((0.1, 1), (0.2, 9)), proposed_tokens=0)
    assert of("accept_length", cell(drafted)) == pytest.approx(1 + 6 / 4)
    assert of("accept_length", cell(drafted, plain)) == pytest.approx(1 + 6 / (4 + 9))
    assert of("accept_length", cell(plain)) is None
