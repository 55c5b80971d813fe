"""Writing a results folder, so that a process or a machine that dies at any moment leaves nothing that reads wrongly."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct, structs

from specbench import clock
from specbench.errors import StoreError
from specbench.plan import Trial
from specbench.records import Observation, RequestRecord, RunRecord, TrialRecord
from specbench.store.files import (
    ASIDE_FOLDER,
    LOG_FILE,
    MANIFEST_FILE,
    OBSERVATIONS_FILE,
    REQUESTS_FILE,
    RUN_FILE,
    SUITE_FILE,
    inside,
    pretty,
    replace_file,
    sync_folder,
)
from specbench.store.lock import Lock


class LineFile:
    """Appends one JSON value a line, unbuffered: a line is in the kernel's hands before the next is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)
        self.line_count = 0

    def append(self, value: Struct) -> None:
        """Raises StoreError when the line could not be written whole."""
        line = msgspec.json.encode(value) + b"\n"
        try:
            written = self._file.write(line)
        except OSError as error:
            raise StoreError(f"{self._path}: can't be written: {error.strerror}") from None
        if written != len(line):
            os.ftruncate(self._file.fileno(), os.fstat(self._file.fileno()).st_size - written)
            raise StoreError(f"{self._path}: only {written} of {len(line)} bytes were written; is the disk full?")
        self.line_count += 1

    def sync(self) -> None:
        """What was appended survives the machine's death too."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StoreError(f"{self._path}: can't be written: {error.strerror}") from None

    def close(self) -> None:
        """Syncs first."""
        if not self._file.closed:
            try:
                self.sync()
            finally:
                self._file.close()


class TrialWriter:
    """One launch's folder, open for appending."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._made = folder.stat().st_ino
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
        """Replaces `manifest.json` as a whole, after the lines it tells of and with their counts.

        Raises StoreError when something could not be written; what is not `complete` is written even where lines were lost.
        Writes nothing once the folder was moved away: a job whose node was given up may live on, its launch is done again.
        """
        if self.is_elsewhere:
            raise StoreError(f"{self.folder}: was set aside while this launch ran, which is done again elsewhere")
        trouble = self._sync_trouble()
        if trouble is not None and record.complete:
            raise trouble
        record = structs.replace(
            record, request_count=self._requests.line_count, observation_count=self._observations.line_count
        )
        replace_file(self.folder / MANIFEST_FILE, pretty(record))
        if trouble is not None:
            raise trouble

    @property
    def is_elsewhere(self) -> bool:
        """Whether the folder of this name is no longer ours."""
        try:
            return self.folder.stat().st_ino != self._made
        except OSError:
            return True

    def _sync_trouble(self) -> StoreError | None:
        try:
            self._requests.sync()
            self._observations.sync()
        except StoreError as error:
            return error
        return None

    def close(self) -> None:
        """Closes both line files."""
        self._requests.close()
        self._observations.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class RunWriter:
    """A run's folder; nobody else writes to it until `close`."""

    def __init__(self, folder: Path, lock: Lock | None = None) -> None:
        self.folder = folder
        self._lock = lock

    def write_run(self, record: RunRecord) -> None:
        """Replaces `run.json` as a whole."""
        replace_file(self.folder / RUN_FILE, pretty(record))

    def open_trial(self, trial: Trial) -> TrialWriter:
        """Makes the launch's folder. Raises StoreError when it is there already or would lie elsewhere."""
        try:
            writer = TrialWriter(inside(self.folder, trial.folder))
            sync_folder(self.folder)
        except OSError as error:
            raise StoreError(f"{self.folder / trial.folder}: can't be made: {error.strerror}") from None
        return writer

    def set_aside(self, trial: Trial) -> Path | None:
        """Moves what there is of a launch to `aside/`, where no report looks. None when there is nothing."""
        place, aside = inside(self.folder, trial.folder), self.folder / ASIDE_FOLDER
        try:
            if not place.exists():
                return None
            aside.mkdir(exist_ok=True)
            taken_count = len(list(aside.glob(f"{trial.folder}.*")))
            target = place.rename(aside / f"{trial.folder}.{taken_count + 1}")
            sync_folder(aside)
            sync_folder(self.folder)
        except OSError as error:
            raise StoreError(f"{place}: can't be moved to {aside}: {error.strerror}") from None
        return target

    def close(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def create_run(results: Path, suite_name: str, suite_text: str) -> RunWriter:
    """Makes `results/<suite>-<utc>/`, with a suffix when that is taken, and copies the suite's text into it."""
    stem = f"{suite_name}-{clock.utc_stamp()}"
    try:
        results.mkdir(parents=True, exist_ok=True)
        folder = _claim(results, stem)
        writer = open_run(folder)
        replace_file(folder / SUITE_FILE, suite_text.encode())
        sync_folder(results)
    except OSError as error:
        raise StoreError(f"{results}: results can't be written there: {error.strerror}") from None
    return writer


def open_run(folder: Path) -> RunWriter:
    """A folder that is there, to write to. Raises StoreError when another run writes to it."""
    lock = Lock(folder)
    lock.take()
    return RunWriter(folder, lock)


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
