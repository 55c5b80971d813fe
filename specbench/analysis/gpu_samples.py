"""What telemetry saw of the GPUs of one launch. Values of another shape than ours are left out."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from specbench.store import StoredTrial

HOLDING_BACK: Final = (
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sw_power_cap",
    "board_limit",
    "reliability",
)
"""Throttle reasons that slow a busy GPU; idling and clocks that were asked for are none."""


def under_load(trial: StoredTrial) -> Iterator[tuple[float, dict[str, Any]]]:
    """Second and GPU, of the samples taken while a level was driven."""
    windows = [(level.started_s, level.ended_s) for level in trial.record.levels]
    for at_s, value in _samples(trial):
        if any(start_s <= at_s <= end_s for start_s, end_s in windows):
            yield from ((at_s, gpu) for gpu in _dicts(value.get("gpus")))


def lost(trial: StoredTrial) -> dict[int, float]:
    """Second at which each lost GPU was first missed, by index; of the whole launch."""
    found: dict[int, float] = {}
    for at_s, value in _samples(trial):
        for gpu in _dicts(value.get("gpus")):
            if gpu.get("lost") is True and type(gpu.get("index")) is int:
                found.setdefault(gpu["index"], at_s)
    return found


def foreign(trial: StoredTrial) -> list[str]:
    """`process 4711 (python3 of ann) on GPU 0`: seen beside the server, each once."""
    seen = (one for _, value in _samples(trial) for one in _dicts(value.get("foreign")))
    named = (f"process {one.get('pid')} ({one.get('name')} of {one.get('user')}) on GPU {one.get('gpu')}" for one in seen)
    return list(dict.fromkeys(named))


def holding_back(trial: StoredTrial) -> tuple[int, Counter[str]]:
    """Samples under load that tell their reasons, and how many of them name each that slows."""
    count, reasons = 0, Counter[str]()
    for _, gpu in under_load(trial):
        told = gpu.get("throttle_reasons")
        if isinstance(told, list):
            count += 1
            reasons.update(one for one in HOLDING_BACK if one in told)
    return count, reasons


def sm_clocks_mhz(trial: StoredTrial) -> list[float]:
    """Of each GPU and second under load."""
    clocks = (gpu.get("sm_clock_mhz") for _, gpu in under_load(trial))
    return [float(one) for one in clocks if isinstance(one, int | float) and not isinstance(one, bool)]


def longest_gap_s(trial: StoredTrial) -> float | None:
    """Between two samples under load, a level's begin and end counted; None where the launch has no sample at all."""
    at = [at_s for at_s, _ in _samples(trial)]
    if not at:
        return None
    gaps = []
    for level in trial.record.levels:
        inside = [level.started_s, *(one for one in at if level.started_s < one < level.ended_s), level.ended_s]
        gaps += [after - before for before, after in pairwise(inside)]
    return max(gaps, default=0.0)


def _samples(trial: StoredTrial) -> Iterator[tuple[float, dict[str, Any]]]:
    for one in trial.observations:
        if one.source == "telemetry" and one.name == "gpus" and isinstance(one.value, dict):
            yield one.at_s, one.value


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
