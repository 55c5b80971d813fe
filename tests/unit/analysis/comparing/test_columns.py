"""The lean reading gives what `METRICS` gives, on stored runs of a real engine and on odd records."""

from pathlib import Path

import msgspec
import pytest

from specbench.analysis.cells import Cell, Load, arms_of, suite_of
from specbench.analysis.comparing.columns import figures, read_columns
from specbench.analysis.comparing.launches import launch_figures
from specbench.analysis.metrics import METRICS
from specbench.records import RequestRecord
from specbench.store import read_run
from specbench.streams import LeanRequest, open_result
from specbench.suite import Slo
from specbench.timing import is_impossible
from tests.unit.analysis.runs import request

EXAMPLES = sorted(one for one in (Path(__file__).parents[4] / "results/examples").iterdir() if one.is_dir())


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda one: one.name)
def test_a_real_run_gives_the_same_figures(folder: Path) -> None:
    stored, opened = read_run(folder), open_result(folder)
    suite = suite_of(stored)
    arms = arms_of(suite, stored.trials)
    compared = 0
    for launch in opened.launches:
        found = launch_figures(launch, suite)
        assert found.refusals == ()
        for key, values in found.figures.items():
            cell = arms[launch.record.trial.variant].cells[key]
            assert values == pytest.approx({name: METRICS[name].of(cell) for name in values}, nan_ok=False)
            compared += sum(value is not None for value in values.values())
    assert compared > 100


def lean(records: list[RequestRecord]) -> list[LeanRequest]:
    return [msgspec.json.decode(msgspec.json.encode(one), type=LeanRequest) for one in records]


ODD = {
    "one chunk": [request(0, chunks=[(0.1, 5)]), request(1)],
    "no chunk": [request(0, chunks=[], output_tokens=None, chunk_tokens=()), request(1)],
    "no counts": [request(0, chunk_tokens=(), output_tokens=None), request(1)],
    "a count at the end": [request(0, chunk_tokens=(), output_tokens=9), request(1)],
    "counts by chunk only": [request(0, output_tokens=None), request(1)],
    "lengths that differ": [request(0, chunk_tokens=(1, 2), output_tokens=7), request(1)],
    "a stepped clock": [request(0, stepped=True), request(1)],
    "failed": [request(0, error="timed out"), request(1)],
    "all failed": [request(0, error="timed out")],
    "a histogram": [request(0, verify_count=4, accept_histogram=(1, 2, 1)), request(1)],
    "steps without drafts": [request(0, verify_count=2), request(1, verify_count=3)],
    "nothing drafted": [request(0, drafts=(4, 3)), request(1, proposed_tokens=0)],
    "none drafted": [request(0, proposed_tokens=0), request(1, proposed_tokens=0)],
    "done before due": [request(0, done_s=-1.0), request(1, drafts=(4, 3))],
    "a chunk before due": [request(0, chunk_s=(-0.5, 0.2, 0.3)), request(1)],
    "all impossible": [request(0, due_s=-3.0)],
    "impossible and failed": [request(0, done_s=-1.0, error="reset"), request(1)],
    "counted and not": [request(0, drafts=(4, 3)), request(1)],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_records_give_the_same_figures(name: str) -> None:
    records, slo, key = ODD[name], Slo(ttft_s=0.15, tpot_s=0.06), ("chat", 1)
    column = read_columns([lean(records)], {key: slo})[key]
    possible = tuple(one for one in records if not is_impossible(one))
    load = Load(requests=possible, impossible_count=len(records) - len(possible))
    cell = Cell(workload="chat", concurrency=1, loads=(load,), slo=slo)
    for metric, value in figures(column, None).items():
        expected = METRICS[metric].of(cell)
        assert value == (None if expected is None else pytest.approx(expected)), metric


def test_warm_up_and_strange_levels_are_left_out() -> None:
    records = [request(0, warmup=True), request(1), request(2, concurrency=8)]
    column = read_columns([lean(records)], {("chat", 1): None})[("chat", 1)]
    assert column.request_count == 1
