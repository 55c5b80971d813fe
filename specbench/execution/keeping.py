"""Between a launch and its folder: nothing secret gets through, and a full disk ends the launch in good order."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import structs

from specbench.errors import StoreError
from specbench.records import Observation, RequestRecord, TrialRecord
from specbench.store import LOG_FILE, TrialWriter
from specbench.suite.secrets import Secrets
from specbench.units import counted

RESERVE_FILE: Final = ".reserve"
RESERVE_BYTES: Final = 256 << 10
"""Held while a launch runs and given up when the disk is full, so that its end can still be written."""
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PIECE_BYTES: Final = 1 << 20
MIB: Final = 2**20


class Keeper:
    """A launch's folder. After the first line that could not be written, none is tried again: `trouble` says why.

    Its methods raise that StoreError, until `is_ending` is set: what must be done at the end is done then.
    """

    def __init__(self, writer: TrialWriter, secrets: Secrets, planned_count: int) -> None:
        self._writer = writer
        self._secrets = secrets
        self._planned_count = planned_count
        self._kept_count = 0
        self.folder = writer.folder
        self.log_path = writer.folder / LOG_FILE
        self.trouble: StoreError | None = None
        self.is_ending = self.is_full = False
        self._reserve = writer.folder / RESERVE_FILE

    def open(self) -> None:
        """Puts space aside. Raises StoreError when there is none."""
        try:
            with self._reserve.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            self._reserve.unlink(missing_ok=True)
            if error.errno in FULL:
                self.is_full = True
                self.trouble = StoreError(f"{self.folder}: {error.strerror}: {self._need()}")
                raise self.trouble from None
            # else a file system that can't do this: nothing is put aside

    def new_log(self) -> Path:
        """The server's log, empty, for its owner alone."""
        self.log_path.touch(mode=0o600)
        return self.log_path

    def add_request(self, record: RequestRecord) -> None:
        """Appends."""
        hide, clean = self._secrets.spoken, self._secrets.clean
        cleaned = structs.replace(
            record,
            prompt_id=hide(record.prompt_id),
            category=hide(record.category),
            output_text=hide(record.output_text),
            finish_reason=record.finish_reason and clean(record.finish_reason),
            error=record.error and clean(record.error),
        )
        with self._writing() as allowed:
            if allowed:
                self._writer.add_request(cleaned)
                self._kept_count += 1

    def add_observation(self, observation: Observation) -> None:
        """Appends."""
        cleaned = structs.replace(observation, value=self._secrets.tree(observation.value))
        with self._writing() as allowed:
            if allowed:
                self._writer.add_observation(cleaned)

    def write_manifest(self, record: TrialRecord) -> TrialRecord:
        """Replaces it, also when there was trouble: it is small. Returns it as written, without secrets."""
        cleaned = self._secrets.record(record)
        with self._writing():
            self._writer.write_manifest(cleaned)
        return cleaned

    @contextmanager
    def _writing(self) -> Iterator[bool]:
        """Gives whether lines may still be appended."""
        if self.trouble is not None and not self.is_ending:
            raise self.trouble
        try:
            yield self.trouble is None
        except StoreError as error:
            self.trouble = self.trouble or self._explained(error)
            self._reserve.unlink(missing_ok=True)
            if not self.is_ending:
                raise self.trouble from None

    def close(self) -> None:
        """Gives the reserve back, and cleans what the server itself wrote. A folder that became another writer's stays."""
        if self._writer.is_elsewhere:
            return
        self._reserve.unlink(missing_ok=True)
        clean_logs(self.folder, self._secrets)

    def _explained(self, error: StoreError) -> StoreError:
        cause = error.__context__
        self.is_full = "disk full" in str(error) or (isinstance(cause, OSError) and cause.errno in FULL)
        seen = str(error).removesuffix("; is the disk full?")
        return StoreError(
            f"{seen}, the disk is full: {self._need()}; what was written is kept" if self.is_full else str(error)
        )

    def _need(self) -> str:
        """How much a launch takes, as far as can be told from this one."""
        written_bytes = sum(path.stat().st_size for path in self.folder.iterdir() if path.name != RESERVE_FILE)
        free_bytes = shutil.disk_usage(self.folder).free
        free = f"{free_bytes / MIB:.1f} MiB are free there"
        if not self._kept_count:
            return f"a launch needs at least {RESERVE_BYTES / MIB:.2f} MiB and what its requests take; {free}"
        whole_bytes = written_bytes * max(1.0, self._planned_count / self._kept_count)
        of_how_many = f"{self._kept_count} of {counted(self._planned_count, 'request')}"
        return (
            f"this launch took {written_bytes / MIB:.2f} MiB for {of_how_many} and needs "
            f"about {(whole_bytes - written_bytes) / MIB:.2f} MiB more; each further launch needs about "
            f"{whole_bytes / MIB:.2f} MiB; {free}"
        )


def clean_logs(folder: Path, secrets: Secrets) -> None:
    """What a server itself wrote; also that of a launch which was cut off before its end."""
    for path in sorted(folder.glob(f"{LOG_FILE}*")):
        clean_file(path, secrets)


def clean_file(path: Path, secrets: Secrets) -> None:
    """Replaced as a whole, and only if it holds something secret."""
    if not path.is_file() or path.is_symlink():
        return
    if all(line == cleaned for line, cleaned in _lines(path, secrets)):
        return
    beside = path.with_name(path.name + ".part")
    with beside.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.writelines(cleaned for _, cleaned in _lines(path, secrets))
    beside.chmod(path.stat().st_mode)
    beside.replace(path)


def _lines(path: Path, secrets: Secrets) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        while line := file.readline(PIECE_BYTES):
            yield line, secrets.clean(line)
