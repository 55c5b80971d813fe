"""What the GPUs said of themselves while a launch ran, as one series a GPU and quantity. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from specbench.records import Observation
from specbench.units import Second

QUANTITIES: Final = (("power", "W"), ("clock", "MHz"), ("temperature", "°C"))
"""Told apart by these words in the names of what was read; the first name of a GPU that holds one is taken."""
PREFERRED: Final = ("sm_clock", "clock_sm", "graphics_clock")
"""Of several clocks, the one that says how fast it computes."""
POINTS_COUNT: Final = 400
"""Of one series, at most; more are thinned, the extremes are kept."""


class Series(Struct, frozen=True, kw_only=True):
    """One quantity of one GPU."""

    gpu: str
    quantity: str
    """`power`, `clock`, `temperature`."""
    unit: str
    points: tuple[tuple[Second, float], ...]
    """When it was read on the launch's clock, and the value."""


def series_of(observations: Iterable[Observation]) -> tuple[Series, ...]:
    """By GPU, then by quantity. A reading is a mapping of one GPU, a list of them, or holds one as `gpus`."""
    found: dict[tuple[str, str], list[tuple[Second, float]]] = {}
    for one in observations:
        if one.source == "telemetry":
            for gpu, reading in _gpus(one.value):
                for quantity, value in _figures(reading):
                    found.setdefault((gpu, quantity), []).append((one.at_s, value))
    units = dict(QUANTITIES)
    order = list(units)
    keys = sorted(found, key=lambda key: (len(key[0]), key[0], order.index(key[1])))
    return tuple(
        Series(gpu=gpu, quantity=quantity, unit=units[quantity], points=thinned(found[gpu, quantity]))
        for gpu, quantity in keys
    )


def _gpus(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    inner = value.get("gpus", value) if isinstance(value, dict) else value
    readings = inner if isinstance(inner, list) else [inner]
    for place, reading in enumerate(readings):
        if isinstance(reading, dict):
            name = next((reading[key] for key in ("index", "gpu_index", "gpu", "gpu_id") if key in reading), place)
            yield str(name), reading


def _figures(reading: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for quantity, _ in QUANTITIES:
        names = [name for name in reading if quantity in name and "limit" not in name and "max" not in name]
        names.sort(key=lambda name: not any(word in name for word in PREFERRED))
        value = next((reading[name] for name in names if type(reading[name]) in (int, float)), None)
        if value is not None:
            yield quantity, float(value)


def thinned(points: list[tuple[Second, float]]) -> tuple[tuple[Second, float], ...]:
    """The lowest and the highest of each of `POINTS_COUNT / 2` stretches, in their order of time."""
    ordered = sorted(points)
    if len(ordered) <= POINTS_COUNT:
        return tuple(ordered)
    size = -(-2 * len(ordered) // POINTS_COUNT)
    piles = [ordered[place : place + size] for place in range(0, len(ordered), size)]
    picked = [sorted({min(pile, key=_value), max(pile, key=_value)}) for pile in piles]
    return tuple(point for pile in picked for point in pile)


def _value(point: tuple[Second, float]) -> float:
    return point[1]
