"""The folder of a suite's nights, on the disk."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from specbench import store
from specbench.errors import StoreError
from specbench.nights import NIGHTS_SCHEMA_VERSION, History, Night

PLACE: Final = "nightly"
HISTORY_FILE: Final = "history.json"
REFERENCE_FILE: Final = "reference"
PAGE_FILE: Final = "index.html"
LATEST: Final = "latest"
STAMP: Final = re.compile(r"-(\d{8}-\d{6})(?:-(\d+))?$")


def folder_of(results: Path, suite_name: str, simulated: bool) -> Path:
    """`results/nightly/<suite>`; rehearsed nights apart, that they never stand for real ones."""
    return results / PLACE / (f"{suite_name}.simulated" if simulated else suite_name)


class NightFolder:
    """One suite's. Raises StoreError for what can't be read or written."""

    def __init__(self, path: Path, suite_name: str) -> None:
        self.path = path
        self._suite_name = suite_name

    def make(self) -> None:
        """Where it is not there yet."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path}: can't be made: {error.strerror}") from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One night at a time. Raises StoreError naming the one that runs."""
        lock = store.Lock(self.path, "night")
        lock.take()
        try:
            yield
        finally:
            lock.release()

    def history(self) -> History:
        """An empty one before the first night."""
        path = self.path / HISTORY_FILE
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return History(suite_name=self._suite_name)
        except OSError as error:
            raise StoreError(f"{path}: can't be read: {error.strerror}") from None
        return _decoded(path, raw)

    def write_history(self, history: History) -> None:
        """Replaces it as a whole."""
        store.replace_file(self.path / HISTORY_FILE, store.pretty(history))

    def write_page(self, text: str) -> Path:
        """Where it is then."""
        page = self.path / PAGE_FILE
        store.replace_file(page, text.encode())
        return page

    def write_latest(self, forms: Mapping[str, str]) -> Path:
        """Tonight's answer by file name; what earlier nights left there goes."""
        folder = self.path / LATEST
        try:
            folder.mkdir(exist_ok=True)
            for old in folder.iterdir():
                if old.is_file() and old.name not in forms:
                    old.unlink()
        except OSError as error:
            raise StoreError(f"{folder}: can't be written: {error.strerror}") from None
        for name, text in forms.items():
            store.replace_file(folder / name, text.encode())
        return folder

    # -- the reference -----------------------------------------------------------------------------------

    def pinned(self) -> Path | None:
        """The run that the file `reference` names, by a path from this folder or from anywhere; None without the file."""
        path = self.path / REFERENCE_FILE
        try:
            told = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{path}: can't be read: {error}") from None
        if not told or "\n" in told:
            raise StoreError(
                f"{path}: must hold one line, the folder of a run; remove it to compare with the last good night"
            )
        try:
            return self.path / Path(told).expanduser()
        except RuntimeError:
            raise StoreError(f"{path}: names a home folder that is not there: {told}") from None

    def pin(self, run: Path) -> None:
        """From now on; by its name where it lies in this folder, so that the folder can be moved."""
        inside = run.resolve().parent == self.path.resolve()
        store.replace_file(self.path / REFERENCE_FILE, f"{run.name if inside else run.resolve()}\n".encode())

    def unpin(self) -> bool:
        """Whether one was pinned."""
        try:
            (self.path / REFERENCE_FILE).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"{self.path / REFERENCE_FILE}: can't be removed: {error.strerror}") from None
        return True

    # -- the disk ----------------------------------------------------------------------------------------

    def holds(self, night: Night) -> bool:
        """Whether its run is still there."""
        return bool(night.run) and (store.inside(self.path, night.run) / store.RUN_FILE).is_file()

    def runs(self) -> tuple[str, ...]:
        """Names of the runs on the disk, oldest first; also of those that no row names, for their night was killed."""
        names = [one.parent.name for one in self.path.glob(f"*/{store.RUN_FILE}") if not one.parent.is_symlink()]
        return tuple(sorted(names, key=_age))

    def size_bytes(self, run: str) -> int:
        """On the disk, of one run; 0 when it is not there."""
        place = store.inside(self.path, run)
        return sum(_file_bytes(Path(folder, name)) for folder, _, names in os.walk(place) for name in names)

    def delete(self, run: str) -> None:
        """One run, a folder directly in this one; never through a link."""
        place = store.inside(self.path, run)
        if place.is_symlink() or not (place / store.RUN_FILE).is_file():
            raise StoreError(f"{place}: is no run of ours, left alone")
        try:
            shutil.rmtree(place)
        except OSError as error:
            raise StoreError(f"{place}: can't be deleted: {error.strerror}") from None


def _age(name: str) -> tuple[str, int]:
    """The moment in a run's name, and its place among those of the same second."""
    found = STAMP.search(name)
    return (found[1], int(found[2] or 1)) if found else ("", 0)


def _file_bytes(path: Path) -> int:
    """What it takes on the disk; 0 when it has just gone."""
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0


def _decoded(path: Path, raw: bytes) -> History:
    try:
        head: Any = msgspec.json.decode(raw)
        version = head.get("schema_version") if isinstance(head, dict) else None
        if type(version) is not int or version > NIGHTS_SCHEMA_VERSION:
            told = "has no schema_version" if type(version) is not int else f"has schema_version {version}"
            raise StoreError(
                f"{path}: {told}; this specbench reads up to {NIGHTS_SCHEMA_VERSION}; move it away to begin a new one"
            )
        return msgspec.json.decode(raw, type=History)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"{path}: is no history of nights: {error}; move it away to begin a new one") from None
