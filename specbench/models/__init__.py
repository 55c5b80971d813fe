"""The models that specbench makes itself, once, from one small GGUF file: `specbench:smollm2-135m-…`.

All three come from SmolLM2-135M-Instruct (Apache-2.0) and share its tokenizer, so that one can draft for another. They
are folders in OpenVINO's format, kept in the cache. Nothing here is done at import, and only `ensure` fetches or makes.
"""

import os
from collections.abc import Callable
from pathlib import Path

from specbench.errors import SpecbenchError
from specbench.models import fetch

PREFIX = "specbench:"
RECIPES = {
    "smollm2-135m-f16": "F16 weights, dequantized from the file's Q4_1: the target",
    "smollm2-135m-q4": "the file's own Q4_1 weights: a good drafter",
    "smollm2-135m-pruned": "the Q4_1 weights without 10 of the 30 layers: a weak drafter",
}
RECIPE_VERSION = 1
"""Counts up when a recipe changes; part of the folder's name, so that an old folder is never taken for a new one."""

Note = Callable[[str], None]


def is_own(path: str) -> bool:
    """Whether a suite's model path names a model that specbench makes."""
    return path.startswith(PREFIX)


def looks_local(path: str) -> bool:
    """A folder or file rather than a hub repository `owner/name`, be it there or not."""
    parts = path.split("/")
    if path.startswith(("/", "./", "../", "~")) or path.endswith(".gguf") or len(parts) > 2 or Path(path).exists():
        return True
    return len(parts) == 2 and Path(parts[0]).is_dir()


def is_missing(path: str) -> bool:
    """Whether it names a folder or file of this machine that is not there."""
    return not is_own(path) and looks_local(path) and not Path(path).expanduser().exists()


def folder_of(path: str) -> Path:
    """Where a model lies or will lie; a path that is not `specbench:…` stays as it is. Touches no file.

    Raises SpecbenchError for a `specbench:` name that does not exist.
    """
    if not is_own(path):
        return Path(path).expanduser()
    name = path.removeprefix(PREFIX)
    if name not in RECIPES:
        known = ", ".join(PREFIX + one for one in RECIPES)
        raise SpecbenchError(f"there is no model '{path}'; specbench makes: {known}")
    return cache_folder() / "models" / f"{name}-r{RECIPE_VERSION}-{fetch.source_key()}"


def is_made(path: str) -> bool:
    """Whether `ensure` would have nothing to do. A folder that was cut off while it was made has another name."""
    return folder_of(path).is_dir()


def ensure(path: str, note: Note) -> Path:
    """The model's folder, fetched and made first where it is lacking. `note` hears of each step that takes time.

    Raises SpecbenchError in one sentence when the source can't be had or the model can't be made.
    """
    folder = folder_of(path)
    if not is_own(path) or folder.is_dir():
        return folder
    from specbench.models import smollm2

    return smollm2.make_once(path.removeprefix(PREFIX), folder, note)


def cache_folder() -> Path:
    """`$SPECBENCH_CACHE`, or `$XDG_CACHE_HOME/specbench`, or `~/.cache/specbench`."""
    if stated := os.environ.get("SPECBENCH_CACHE"):
        return Path(stated).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "specbench"
