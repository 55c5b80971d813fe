"""Reading a results folder: what can't be read without a doubt raises `StoreError`."""

from collections.abc import Iterator
from itertools import starmap
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from specbench.errors import StoreError
from specbench.plan import Trial
from specbench.records import SCHEMA_VERSION, Observation, RequestRecord, RunRecord, TrialRecord
from specbench.store.files import MANIFEST_FILE, OBSERVATIONS_FILE, REQUESTS_FILE, RUN_FILE, inside
from specbench.units import counted

Record = TypeVar("Record", RunRecord, TrialRecord, RequestRecord, Observation)


class StoredTrial(Struct, frozen=True, kw_only=True):
    """One launch, as read."""

    folder: str
    record: TrialRecord
    requests: tuple[RequestRecord, ...]
    observations: tuple[Observation, ...]
    dropped_count: int = 0
    """Last lines that were cut off and are left out, 0 to 2."""
    missing_count: int = 0
    """Lines that the manifest counts and the files lack."""
    observations_whole: bool = True
    """False when some of them are among the missing."""


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run, as read. `trials` holds those that were begun, in the plan's order."""

    folder: str
    run: RunRecord
    trials: tuple[StoredTrial, ...]

    @property
    def dropped_count(self) -> int:
        """Cut-off lines left out, over all trials."""
        return sum(trial.dropped_count for trial in self.trials)

    @property
    def missing_count(self) -> int:
        """Lines lost since they were counted, over all trials."""
        return sum(trial.missing_count for trial in self.trials)


def read_run(folder: Path | str) -> StoredRun:
    """A run and all its launches that were begun. Raises StoreError in one sentence."""
    folder = Path(folder)
    run = read_plan(folder)
    return StoredRun(folder=str(folder), run=run, trials=tuple(starmap(read_trial, begun(folder, run))))


def read_plan(folder: Path) -> RunRecord:
    """Its `run.json`. Raises StoreError, also where a launch is named twice."""
    if not _is_file(folder / RUN_FILE):
        raise StoreError(
            f"{folder}: no result of specbench: it has no {RUN_FILE}; give a folder such as results/<suite>-<utc>"
        )
    run = read_manifest(folder / RUN_FILE, RunRecord)
    names = [trial.folder for trial in run.trials]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StoreError(f"{folder / RUN_FILE}: names the launch {twice} twice")
    return run


def begun(folder: Path, run: RunRecord) -> Iterator[tuple[Path, Trial]]:
    """Folders of launches, in the plan's order. One without a manifest was cut off before anything was recorded."""
    for trial in run.trials:
        place = inside(folder, trial.folder)
        if _is_file(place / MANIFEST_FILE):
            yield place, trial


def read_launch(folder: Path, trial: Trial) -> TrialRecord:
    """A launch's manifest. Raises StoreError when it holds another trial than the plan says."""
    record = read_manifest(folder / MANIFEST_FILE, TrialRecord)
    if record.trial != trial:
        raise StoreError(f"{folder / MANIFEST_FILE}: holds another trial than {RUN_FILE} says: {record.trial.folder}")
    return record


def read_trial(folder: Path, trial: Trial) -> StoredTrial:
    """One launch's folder. Raises StoreError when it holds another trial than the plan says."""
    record = read_launch(folder, trial)
    requests, requests_dropped = read_lines(folder / REQUESTS_FILE, RequestRecord)
    observations, observations_dropped = read_lines(folder / OBSERVATIONS_FILE, Observation)
    lost_requests = lost_count(folder / REQUESTS_FILE, len(requests), record.request_count, record.complete)
    lost = lost_count(folder / OBSERVATIONS_FILE, len(observations), record.observation_count, record.complete)
    return StoredTrial(
        folder=str(folder),
        record=record,
        missing_count=lost_requests + lost,
        observations_whole=lost == 0,
        requests=requests,
        observations=observations,
        dropped_count=requests_dropped + observations_dropped,
    )


def lost_count(path: Path, found_count: int, counted_count: int | None, complete: bool) -> int:
    """Lines that were counted and are not there; 0 where nobody counted.

    Raises StoreError for more than a complete launch wrote: they can't all be its own.
    """
    if counted_count is None:
        return 0
    if complete and found_count > counted_count:
        raise StoreError(
            f"{path}: holds {counted(found_count, 'line')} where its {MANIFEST_FILE} counts {counted_count}: "
            "not all are of this launch"
        )
    return max(0, counted_count - found_count)


def read_manifest(path: Path, kind: type[Record]) -> Record:
    """A JSON file that states its `schema_version`. Raises StoreError, also for a version that is newer than ours."""
    raw = _bytes_of(path)
    try:
        head: Any = msgspec.json.decode(raw)
        _check_version(path, head)
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"{path}: can't be read as a {kind.__name__}: {error}") from None


def _check_version(path: Path, head: Any) -> None:
    version = head.get("schema_version") if isinstance(head, dict) else None
    if type(version) is not int or version < 1:
        raise StoreError(f"{path}: has no schema_version; this is no result of specbench")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: written by a newer specbench (schema_version {version}; this one reads up to {SCHEMA_VERSION})"
        )


def read_lines(path: Path, kind: type[Record]) -> tuple[tuple[Record, ...], int]:
    """Values of a `.jsonl`, and how many cut-off last lines were left out (0 or 1).

    A missing file holds nothing. A whole line that can't be read raises StoreError with file:line.
    """
    if not path.exists():
        return (), 0
    lines = _bytes_of(path).split(b"\n")
    rest = lines.pop()
    decoder = msgspec.json.Decoder(kind)
    values: list[Record] = []
    for line_number, line in enumerate(lines, 1):
        try:
            values.append(decoder.decode(line))
        except (msgspec.DecodeError, RecursionError) as error:
            raise StoreError(f"{path}:{line_number}: can't be read as a {kind.__name__}: {error}") from None
    return tuple(values), 1 if rest else 0


def _is_file(path: Path) -> bool:
    """Raises StoreError where the folder can't be looked into."""
    try:
        return path.is_file()
    except OSError as error:
        raise StoreError(f"{path}: can't be read: {error.strerror}") from None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: can't be read: {error.strerror}") from None
