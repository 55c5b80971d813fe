"""Pooling and stale throughput, on samples made by hand."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from specbench.analysis.acceptance import read_log
from specbench.analysis.stale import stale
from specbench.dialects import DecodeSample, LogLine
from specbench.dialects.sglang_log import parse_line


class Interval(NamedTuple):
    line: int
    tps: float
    running: int
    after_idle: bool
    length: float | None


def interval(line: int, tps: float, running: int = 1, *, after_idle: bool = False, length: float | None = 2.0) -> Interval:
    return Interval(line, tps, running, after_idle, length)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([interval(1, 2.0, after_idle=True), interval(2, 100.0), interval(3, 110.0)], {1}),
        ([interval(1, 90.0, after_idle=True), interval(2, 100.0), interval(3, 110.0)], set()),
        ([interval(1, 2.0, after_idle=True), interval(2, 100.0, after_idle=True), interval(3, 99.0, after_idle=True)], {1}),
        ([interval(1, 100.0), interval(2, 40.0), interval(3, 100.0)], set()),  # slow, but no idling before
        ([interval(1, 100.0), interval(2, 1.0), interval(3, 100.0)], {2}),
        ([interval(1, 100.0), interval(2, 100.0), interval(3, 500.0, 32, after_idle=True)], {3}),
        ([interval(1, 100.0), interval(2, 500.0, 32), interval(3, 480.0, 32, after_idle=True)], set()),
        (
            [interval(1, 100.0), interval(2, 100.0), interval(3, 100.0), interval(4, 50.0, length=1.0, after_idle=True)],
            set(),
        ),
        ([interval(1, 0.0, after_idle=True), interval(2, 100.0)], {1}),
        ([interval(1, 100.0, 0)], set()),
        ([], set()),
    ],
)
def test_stale_lines(rows: list[Interval], expected: set[int]) -> None:
    running, length, tps = (
        np.array([getattr(one, name) for one in rows], np.float64) for name in ("running", "length", "tps")
    )
    found = stale(running, length, tps, np.array([one.after_idle for one in rows], np.bool_))
    assert {one.line for one, is_stale in zip(rows, found, strict=True) if is_stale} == expected


def test_counts_that_change_weigh_the_lines() -> None:
    samples = [DecodeSample(running_requests=run, accept_length=length) for run, length in ((1, 2.0), (3, 4.0))]
    report = read_log(["0", "1"], lambda line: LogLine(kind="decode", sample=samples[int(line)]))
    assert report.pooled_accept_length is not None
    assert (report.pooled_accept_length.value, report.pooled_accept_length.weights) == (3.5, "running_requests")
    assert report.pooled_accept_length.estimate


def test_nothing_can_be_said_of_an_empty_log() -> None:
    report = read_log([], parse_line)
    assert report.pooled_accept_length is None
    assert (report.speculation_active, report.dead_drafter, report.server_tps) == (None, False, None)


def test_a_log_is_read_as_a_stream() -> None:
    text = (
        "[2026-11-01 10:00:01 TP0] Decode batch, #running-req: 1, #token: {}, cuda graph: True, "
        "gen throughput (token/s): 61.02, #queue-req: 0"
    )

    def lines() -> Iterator[str]:
        yield from (text.format(number) for number in range(2000))

    report = read_log(lines(), parse_line)
    assert (report.line_count, report.sample_count, report.decode_graph_ratio) == (2000, 2000, 1.0)
