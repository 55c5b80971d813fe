"""Decode lines as columns, in the order of the log: who wrote them, which say again what was said, which come after idle.

Tensor-parallel ranks of one stream write the same line each; the first that ever wrote speaks for its stream.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from specbench.dialects import DecodeSample

Stream = tuple[int | None, int | None]
"""Data-parallel and pipeline rank."""
MOST_STREAMS: Final = 1024
"""Further ones, which only garbage has, are taken for lines without a rank."""
RADIX: Final = 1 << 21

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """Decode lines. NaN, and -1 for `graph`: the line does not say."""

    line: NDArray[np.int64]
    """1-based number."""
    stream: NDArray[np.int64]
    writer: NDArray[np.int64]
    """Tensor-parallel rank; 0 when none is printed."""
    running: Floats
    length: Floats
    rate: Floats
    tps: Floats
    graph: NDArray[np.int8]
    said: Callable[[int], object]
    """What a row says, by its place: equal for lines that say the same."""

    def part(self, places: NDArray[np.intp]) -> "Rows":
        """Some of them, in the order given."""
        return Rows(
            line=self.line[places],
            stream=self.stream[places],
            writer=self.writer[places],
            running=self.running[places],
            length=self.length[places],
            rate=self.rate[places],
            tps=self.tps[places],
            graph=self.graph[places],
            said=lambda place: self.said(int(places[place])),
        )


class Kept(NamedTuple):
    """Rows that count, of one stretch of the log."""

    rows: Rows
    after_idle: NDArray[np.bool_]
    """First of their stream, or first after a prefill that found nothing running, or after a flush."""
    repeated: NDArray[np.int64]
    """Line numbers of those left out."""


class Idle(NamedTuple):
    """The server was seen idle here."""

    line: int
    stream: int | None
    """None: all streams."""


class _State(NamedTuple):
    """The last row of a stream that counted."""

    writer: int
    values: tuple[float, ...]
    said: object
    idle_since: bool


def rows_of(samples: Sequence[tuple[int, DecodeSample]]) -> Rows:
    """(line number, sample) pairs, in order."""
    ones = [sample for _, sample in samples]
    return Rows(
        line=np.array([number for number, _ in samples], np.int64),
        stream=np.array([code_of(stream_of(one.rank)) for one in ones], np.int64),
        writer=np.array([(one.rank or {}).get("tp", 0) for one in ones], np.int64),
        running=_floats(one.running_requests for one in ones),
        length=_floats(one.accept_length for one in ones),
        rate=_floats(one.accept_rate for one in ones),
        tps=_floats(one.gen_throughput_tps for one in ones),
        graph=np.array([-1 if one.cuda_graph is None else int(one.cuda_graph) for one in ones], np.int8),
        said=ones.__getitem__,
    )


def joined(first: Rows, second: Rows) -> Rows:
    """Both, by line number."""
    count = len(first.line)

    def said(place: int) -> object:
        return first.said(place) if place < count else second.said(place - count)

    every = Rows(
        line=np.concatenate((first.line, second.line)),
        stream=np.concatenate((first.stream, second.stream)),
        writer=np.concatenate((first.writer, second.writer)),
        running=np.concatenate((first.running, second.running)),
        length=np.concatenate((first.length, second.length)),
        rate=np.concatenate((first.rate, second.rate)),
        tps=np.concatenate((first.tps, second.tps)),
        graph=np.concatenate((first.graph, second.graph)),
        said=said,
    )
    return every.part(np.argsort(every.line, kind="stable"))


def stream_of(rank: dict[str, int] | None) -> Stream:
    """Tensor-parallel ranks of one stream say the same."""
    return ((rank or {}).get("dp"), (rank or {}).get("pp"))


def code_of(stream: Stream) -> int:
    """A stream as one whole number."""
    dp, pp = (0 if rank is None else rank + 1 for rank in stream)
    return dp * RADIX + pp


def stream_named(code: int) -> Stream:
    """The stream of a code."""
    dp, pp = divmod(code, RADIX)
    return (dp - 1 if dp else None, pp - 1 if pp else None)


class Streams:
    """What is remembered of each stream from one stretch to the next."""

    def __init__(self) -> None:
        self._states: dict[int, _State] = {}

    def take(self, rows: Rows, idle: Sequence[Idle]) -> Kept:
        """The next stretch. `idle` in the order of the log; its lines lie among those of the rows."""
        codes = _distinct(rows.stream)
        known = self._without_garbage(rows, codes)
        present = (codes if known is rows else _distinct(known.stream)).tolist()
        rows = known
        kept, after, repeated = [], [], []
        for code in present:
            places = np.flatnonzero(rows.stream == code) if len(present) > 1 else np.arange(len(rows.line))
            marks = np.array([one.line for one in idle if one.stream in (None, code)], np.int64)
            own, first = self._take_stream(code, rows, places, marks)
            kept.append(own)
            after.append(first)
            if len(own) < len(places):
                repeated.append(np.setdiff1d(places, own, assume_unique=True))
        for one in idle:
            self._mark(one, present)
        if not present:
            return Kept(rows, np.zeros(0, np.bool_), np.zeros(0, np.int64))
        places, first = np.concatenate(kept), np.concatenate(after)
        if len(present) > 1:
            order = np.argsort(places, kind="stable")
            places, first = places[order], first[order]
        if not repeated:
            return Kept(rows, first, np.zeros(0, np.int64))
        return Kept(rows.part(places), first, np.sort(rows.line[np.concatenate(repeated)]))

    def _without_garbage(self, rows: Rows, codes: NDArray[np.int64]) -> Rows:
        new = np.array([code for code in codes.tolist() if code not in self._states], np.int64)
        room_count = max(0, MOST_STREAMS - len(self._states))
        if len(new) <= room_count:
            return rows
        return rows._replace(stream=np.where(np.isin(rows.stream, new[room_count:]), 0, rows.stream))

    def _mark(self, idle: Idle, present: Sequence[int]) -> None:
        """Remembers it for streams that wrote nothing in this stretch."""
        codes = self._states.keys() if idle.stream is None else self._states.keys() & {idle.stream}
        for code in [code for code in codes if code not in present]:
            self._states[code] = self._states[code]._replace(idle_since=True)

    def _take_stream(
        self, code: int, rows: Rows, places: NDArray[np.intp], marks: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Places that count, and which of them come after idle."""
        state = self._states.get(code)
        writer = state.writer if state else int(rows.writer[places[0]])
        mine = rows.writer[places] == writer
        places = places if mine.all() else places[mine]
        again = _says_again(rows, places, state)
        places = places[~again] if again.any() else places
        if not len(places):
            if state and len(marks):
                self._states[code] = state._replace(idle_since=True)
            return places, np.zeros(0, np.bool_)
        after = np.searchsorted(rows.line[places], marks)
        first = np.zeros(len(places), np.bool_)
        first[after[after < len(places)]] = True
        first[0] |= state is None or state.idle_since
        last, idle_since = int(places[-1]), bool((after == len(places)).any())
        self._states[code] = _State(writer, _values(rows, last), rows.said(last), idle_since)
        return places, first


def _says_again(rows: Rows, places: NDArray[np.intp], state: _State | None) -> NDArray[np.bool_]:
    """Which rows repeat the one before. Numbers first: few rows share them all, and only these are looked at."""
    again = np.zeros(len(places), np.bool_)
    if not len(places):
        return again
    same = np.ones(len(places) - 1, np.bool_)
    for column in (rows.tps, rows.length, rows.rate, rows.running):
        values = column[places]
        same &= (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
        if not same.any():
            break
    for place in (np.flatnonzero(same) + 1).tolist():
        again[place] = rows.said(int(places[place])) == rows.said(int(places[place - 1]))
    if state is not None:
        first = int(places[0])
        again[0] = _values(rows, first) == state.values and rows.said(first) == state.said
    return again


def _values(rows: Rows, place: int) -> tuple[float, ...]:
    columns = (rows.running, rows.length, rows.rate, rows.tps, rows.graph)
    return tuple(-1.0 if column[place] != column[place] else float(column[place]) for column in columns)


def _distinct(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return codes[:1] if len(codes) and (codes == codes[0]).all() else np.unique(codes)


def _floats(values: Iterable[Any]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)
