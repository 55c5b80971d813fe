"""When the requests of an open loop are due: computed before the first one, seeded, the same for every launch."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from specbench.errors import Problem, SpecbenchError
from specbench.suite import Arrival, Workload
from specbench.units import Second

MILLISECONDS_PER_S = 1000


def schedule_s(workload: Workload, seed: int) -> tuple[Second, ...]:
    """Moments from the start of the level, in order; empty for a closed loop. Raises SpecbenchError for a bad trace."""
    arrival = workload.arrival
    if arrival is None:
        return ()
    if arrival.trace is not None:
        return trace_s(Path(arrival.trace).expanduser(), arrival.request_count)
    dice = random.Random(f"{seed}/{workload.name}")
    return tuple(itertools.islice(itertools.accumulate(_gaps_s(arrival, dice)), arrival.count))


def _gaps_s(arrival: Arrival, dice: random.Random) -> Iterator[Second]:
    """Time before each request; its mean is 1 / rate."""
    assert arrival.rate_rps is not None
    mean_s = 1 / arrival.rate_rps
    while True:
        if arrival.process == "constant":
            yield mean_s
        elif arrival.process == "gamma":
            yield dice.gammavariate(arrival.burstiness, mean_s / arrival.burstiness)
        else:
            yield dice.expovariate(arrival.rate_rps)


def trace_s(path: Path, request_count: int | None) -> tuple[Second, ...]:
    """The times of a trace, its first one being the start of the level; no more than `request_count`."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise SpecbenchError(f"{path}: the trace can't be read: {(error.strerror or str(error)).lower()}") from None
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    times_s: list[Second] = []
    for number, line in itertools.islice(numbered, request_count):
        at_s = _time_s(line)
        if at_s is None:
            raise _fault(path, number, 'is no arrival; write a line such as {"at_s": 1.25}')
        if at_s < 0:
            raise _fault(path, number, f"lies before the beginning: {at_s:g} s; times count from 0 on")
        if times_s and at_s < times_s[-1]:
            raise _fault(path, number, f"goes back in time: {at_s:g} s after {times_s[-1]:g} s")
        times_s.append(at_s)
    if not times_s:
        raise SpecbenchError(f"{path}: the trace holds no arrival")
    return tuple(at_s - times_s[0] for at_s in times_s)


def _time_s(line: bytes) -> Second | None:
    try:
        value: Any = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        return None
    if not isinstance(value, dict):
        return _number(value)
    if "at_s" in value:
        return _number(value["at_s"])
    milliseconds = _number(value.get("timestamp"))
    return None if milliseconds is None else milliseconds / MILLISECONDS_PER_S


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None


def _fault(path: Path, number: int, message: str) -> SpecbenchError:
    return SpecbenchError(str(Problem(str(path), number, message)))
