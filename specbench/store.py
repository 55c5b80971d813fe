"""The results folder.

    results/<suite>-<utc>/
      run.json  suite.yaml
      <variant>.launch<n>/
        manifest.json  requests.jsonl  observations.jsonl  server.log

Lines are appended whole, one write each, as they come. A manifest is replaced as a whole (written beside, synced,
renamed), and its `complete` is the last thing set. What can't be read without a doubt raises `StoreError`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Struct

from specbench import clock
from specbench.errors import StoreError
from specbench.plan import Trial
from specbench.records import SCHEMA_VERSION, Observation, RequestRecord, RunRecord, TrialRecord

RUN_FILE = "run.json"
SUITE_FILE = "suite.yaml"
MANIFEST_FILE = "manifest.json"
REQUESTS_FILE = "requests.jsonl"
OBSERVATIONS_FILE = "observations.jsonl"
LOG_FILE = "server.log"

Record = TypeVar("Record", RunRecord, TrialRecord, RequestRecord, Observation)


class StoredTrial(Struct, frozen=True, kw_only=True):
    """One launch, as read."""

    folder: str
    record: TrialRecord
    requests: tuple[RequestRecord, ...]
    observations: tuple[Observation, ...]
    dropped_count: int = 0
    """Last lines that were cut off and are left out, 0 to 2."""


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run, as read. `trials` holds those that were begun, in the plan's order."""

    folder: str
    run: RunRecord
    trials: tuple[StoredTrial, ...]

    @property
    def dropped_count(self) -> int:
        """Cut-off lines left out, over all trials."""
        return sum(trial.dropped_count for trial in self.trials)


class LineFile:
    """Appends one JSON value a line, unbuffered: a line is in the kernel's hands before the next is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    def append(self, value: Struct) -> None:
        """Raises StoreError when the line could not be written whole."""
        line = msgspec.json.encode(value) + b"\n"
        try:
            written = self._file.write(line)
        except OSError as error:
            raise StoreError(f"{self._path}: can't be written: {error.strerror}") from None
        if written != len(line):
            raise StoreError(f"{self._path}: only {written} of {len(line)} bytes were written; is the disk full?")

    def close(self) -> None:
        """Syncs first."""
        if not self._file.closed:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                raise StoreError(f"{self._path}: can't be written: {error.strerror}") from None
            finally:
                self._file.close()


class TrialWriter:
    """One launch's folder, open for appending."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.log_path = folder / LOG_FILE
        self._requests = LineFile(folder / REQUESTS_FILE)
        self._observations = LineFile(folder / OBSERVATIONS_FILE)

    def add_request(self, record: RequestRecord) -> None:
        """Appends to `requests.jsonl`."""
        self._requests.append(record)

    def add_observation(self, observation: Observation) -> None:
        """Appends to `observations.jsonl`."""
        self._observations.append(observation)

    def write_manifest(self, record: TrialRecord) -> None:
        """Replaces `manifest.json` as a whole."""
        replace_file(self.folder / MANIFEST_FILE, pretty(record))

    def close(self) -> None:
        """Closes both line files."""
        self._requests.close()
        self._observations.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RunWriter:
    """A run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_run(self, record: RunRecord) -> None:
        """Replaces `run.json` as a whole."""
        replace_file(self.folder / RUN_FILE, pretty(record))

    def open_trial(self, trial: Trial) -> TrialWriter:
        """Makes the launch's folder. Raises StoreError when it is there already or would lie elsewhere."""
        try:
            return TrialWriter(inside(self.folder, trial.folder))
        except OSError as error:
            raise StoreError(f"{self.folder / trial.folder}: can't be made: {error.strerror}") from None


def create_run(results: Path, suite_name: str, suite_text: str) -> RunWriter:
    """Makes `results/<suite>-<utc>/`, with a suffix when that is taken, and copies the suite's text into it."""
    stem = f"{suite_name}-{clock.utc_stamp()}"
    try:
        results.mkdir(parents=True, exist_ok=True)
        folder = _claim(results, stem)
        replace_file(folder / SUITE_FILE, suite_text.encode())
    except OSError as error:
        raise StoreError(f"{results}: results can't be written there: {error.strerror}") from None
    return RunWriter(folder)


def _claim(results: Path, stem: str) -> Path:
    suffix_index = 1
    while True:
        folder = inside(results, stem if suffix_index == 1 else f"{stem}-{suffix_index}")
        try:
            folder.mkdir()
        except FileExistsError:
            suffix_index += 1
        else:
            return folder


def inside(parent: Path, name: str) -> Path:
    """`parent/name`. Raises StoreError unless that is a direct child."""
    child = parent / name
    if name in ("", ".", "..") or child.resolve().parent != parent.resolve():
        raise StoreError(f"{parent}: '{name}' is no folder directly below it")
    return child


def replace_file(path: Path, content: bytes) -> None:
    """A reader sees the old content or the new, never a part; after a power cut too. Raises StoreError."""
    try:
        beside = path.with_name(path.name + ".part")
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder_fd = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder_fd)
        finally:
            os.close(folder_fd)
    except OSError as error:
        raise StoreError(f"{path}: can't be written: {error.strerror}") from None


def pretty(value: Struct) -> bytes:
    """JSON for people, two spaces a level."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def read_run(folder: Path | str) -> StoredRun:
    """A run and all its launches that were begun. Raises StoreError in one sentence."""
    folder = Path(folder)
    if not _is_file(folder / RUN_FILE):
        raise StoreError(
            f"{folder}: no result of specbench: it has no {RUN_FILE}; give a folder such as results/<suite>-<utc>"
        )
    run = read_manifest(folder / RUN_FILE, RunRecord)
    return StoredRun(folder=str(folder), run=run, trials=tuple(_begun_trials(folder, run)))


def _begun_trials(folder: Path, run: RunRecord) -> Iterator[StoredTrial]:
    """A folder without a manifest was cut off before anything was recorded."""
    for trial in run.trials:
        place = inside(folder, trial.folder)
        if _is_file(place / MANIFEST_FILE):
            yield read_trial(place, trial)


def read_trial(folder: Path, trial: Trial) -> StoredTrial:
    """One launch's folder. Raises StoreError when it holds another trial than the plan says."""
    record = read_manifest(folder / MANIFEST_FILE, TrialRecord)
    if record.trial != trial:
        raise StoreError(f"{folder / MANIFEST_FILE}: holds another trial than {RUN_FILE} says: {record.trial.folder}")
    requests, requests_dropped = read_lines(folder / REQUESTS_FILE, RequestRecord)
    observations, observations_dropped = read_lines(folder / OBSERVATIONS_FILE, Observation)
    return StoredTrial(
        folder=str(folder),
        record=record,
        requests=requests,
        observations=observations,
        dropped_count=requests_dropped + observations_dropped,
    )


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
