"""What the records of a run say about GPUs: who held which, when, and how much of them was held."""

import datetime
from collections.abc import Iterator
from typing import NamedTuple

from specbench.store import StoredRun


class Held(NamedTuple):
    """One GPU, held by one launch."""

    gpu: tuple[str, int]
    """Node and index."""
    folder: str
    begin_s: float
    end_s: float


def holdings(stored: StoredRun) -> list[Held]:
    """Of every launch, in the order of their beginnings."""
    return sorted(_holdings(stored), key=lambda one: one.begin_s)


def _holdings(stored: StoredRun) -> Iterator[Held]:
    for trial in stored.trials:
        lease, slot = trial.record.lease, trial.record.slot
        assert lease is not None
        assert lease.ended_utc is not None
        for node in slot.nodes or ("",):
            for index in slot.gpu_ids:
                yield Held((node, index), trial.record.trial.folder, _s(lease.begun_utc), _s(lease.ended_utc))


def _s(utc: str) -> float:
    return datetime.datetime.fromisoformat(utc).timestamp()


def shared(stored: StoredRun) -> list[tuple[Held, Held]]:
    """Pairs of launches that held one GPU at the same time."""
    found = holdings(stored)
    return [
        (one, other)
        for place, one in enumerate(found)
        for other in found[place + 1 :]
        if other.gpu == one.gpu and other.begin_s < one.end_s
    ]


def leased_ratio(stored: StoredRun, gpus_count: int) -> float:
    """GPU time held / GPU time there was, from the first lease to the last one's beginning: while work remained."""
    found = holdings(stored)
    begin_s, end_s = found[0].begin_s, found[-1].begin_s
    held_s = sum(max(0.0, min(one.end_s, end_s) - one.begin_s) for one in found)
    return held_s / (gpus_count * (end_s - begin_s))
