"""What the GPUs said of themselves while a launch ran, as one series a GPU and quantity. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from specbench.records import Observation
from specbench.units import Second

QUANTITIES: Final = {"power": ("power_w", "W"), "SM clock": ("sm_clock_mhz", "MHz"), "temperature": ("temperature_c", "°C")}
"""Name for a reader; key in a reading, and its unit."""
POINTS_COUNT: Final = 240
"""Of one series, at most; more are thinned, the extremes are kept."""


class Series(Struct, frozen=True, kw_only=True):
    """One quantity of one GPU."""

    gpu: str
    quantity: str
    """A key of `QUANTITIES`."""
    unit: str
    points: tuple[tuple[Second, float], ...]
    """When it was read on the launch's clock, and the value."""


def series_of(observations: Iterable[Observation]) -> tuple[Series, ...]:
    """By GPU, then by quantity. What a GPU did not tell is left out, as are values of another shape than ours."""
    found: dict[tuple[str, str], list[tuple[Second, float]]] = {}
    for one in observations:
        for reading in _readings(one):
            for quantity, (key, _) in QUANTITIES.items():
                value = reading.get(key)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found.setdefault((str(reading.get("index")), quantity), []).append((one.at_s, float(value)))
    order = list(QUANTITIES)
    keys = sorted(found, key=lambda key: (len(key[0]), key[0], order.index(key[1])))
    return tuple(
        Series(gpu=gpu, quantity=quantity, unit=QUANTITIES[quantity][1], points=thinned(found[gpu, quantity]))
        for gpu, quantity in keys
    )


def _readings(one: Observation) -> Iterator[dict[str, Any]]:
    """One a GPU."""
    if one.source == "telemetry" and one.name == "gpus" and isinstance(one.value, dict):
        readings = one.value.get("gpus")
        yield from (each for each in (readings if isinstance(readings, list) else ()) if isinstance(each, dict))


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
