"""The names in a results folder, and files that are whole or not there."""

import contextlib
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from specbench.errors import StoreError

RUN_FILE: Final = "run.json"
SUITE_FILE: Final = "suite.yaml"
MANIFEST_FILE: Final = "manifest.json"
REQUESTS_FILE: Final = "requests.jsonl"
OBSERVATIONS_FILE: Final = "observations.jsonl"
LOG_FILE: Final = "server.log"
ASIDE_FOLDER: Final = "aside"
"""Launches that were cut off and done again; read by people only."""


def inside(parent: Path, name: str) -> Path:
    """`parent/name`. Raises StoreError unless that is a direct child."""
    child = parent / name
    if name in ("", ".", "..") or child.resolve().parent != parent.resolve():
        raise StoreError(f"{parent}: '{name}' is no folder directly below it")
    return child


def replace_file(path: Path, content: bytes) -> None:
    """A reader sees the old content or the new, never a part; after a power cut too. Raises StoreError."""
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)  # on a full disk the part takes what others need
        raise StoreError(f"{path}: can't be written: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Its names are on disk, not only in memory. Raises OSError."""
    folder_fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(folder_fd)
    finally:
        os.close(folder_fd)


def pretty(value: Struct) -> bytes:
    """JSON for people, two spaces a level."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
