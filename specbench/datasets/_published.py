"""What the published sets have in common: a file from the hub, the web or a folder, and rows that become prompts."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from msgspec import Struct

from specbench.datasets import Prompt, spread
from specbench.errors import Problem, SpecbenchError
from specbench.models import cache_folder
from specbench.models.hub import library, offline_reason
from specbench.suite import Workload

Row = Mapping[str, Any]
PromptOf = Callable[[Row, int], Prompt | None]
TIMEOUT_S: Final = 60.0


class Published(Struct, frozen=True, kw_only=True):
    """A dataset that others publish. A workload's `path`, a copy on this machine, is read instead where it is given."""

    name: str
    prompt_of: PromptOf
    """Of a row and its number, from 1; None for a row without a prompt. Raises KeyError, ValueError, TypeError or
    AttributeError for a row of another shape."""
    repository: str | None = None
    """On the hub; None when it isn't there."""
    file: str = ""
    url: str | None = None
    """Where it is not on the hub."""

    def prompts(self, workload: Workload, seed: int, count: int) -> tuple[Prompt, ...]:
        path = self._path(workload)
        return spread(read_published(path, self.prompt_of), workload.categories, seed, count)

    def source(self, workload: Workload) -> dict[str, str]:
        """What was read: its origin, its sha256, on the hub the commit."""
        path = self._path(workload)
        origin = str(path) if workload.path else self.repository or self.url or ""
        found = {"origin": origin, "file_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        snapshot = path.parent.parts[path.parent.parts.index("snapshots") + 1] if "snapshots" in path.parent.parts else None
        return found | ({"commit": snapshot} if snapshot and not workload.path else {})

    def _path(self, workload: Workload) -> Path:
        if workload.path is not None:
            return Path(workload.path).expanduser()
        if self.repository is not None:
            return from_hub(self.name, self.repository, self.file)
        if self.url is not None:
            return from_web(self.name, self.url)
        raise SpecbenchError(f"workload '{workload.name}': dataset '{self.name}' needs `path`, the file with its prompts")


def from_hub(name: str, repository: str, file: str) -> Path:
    """Into the hub's own cache, which offline mode is served from. Raises SpecbenchError."""
    try:
        hub = library()
    except ImportError:
        raise SpecbenchError(
            f"dataset '{name}' comes from the hub: pip install 'specbench[hub]', or give `path`, a copy of {file}"
        ) from None
    offline = offline_reason()
    try:
        return Path(hub.hf_hub_download(repository, file, repo_type="dataset", local_files_only=offline is not None))
    except Exception as error:  # noqa: BLE001  the library raises its own, requests' or httpx's, by its version
        if offline:
            raise SpecbenchError(
                f"dataset '{name}': {offline}, and {repository} is not in the hub's cache; give `path`, a copy of {file}"
            ) from None
        first = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise SpecbenchError(
            f"dataset '{name}': {repository} can't be fetched from the hub ({type(error).__name__}: {first[:160]}); "
            f"give `path`, a copy of {file}"
        ) from None


def from_web(name: str, url: str) -> Path:
    """Into our own cache, once. Raises SpecbenchError."""
    path = cache_folder() / "datasets" / f"{name}.jsonl"
    if path.is_file():
        return path
    try:
        response = httpx.get(url, timeout=TIMEOUT_S, follow_redirects=True).raise_for_status()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".part{os.getpid()}")
        part.write_bytes(response.content)
        part.replace(path)
    except (httpx.HTTPError, OSError) as error:
        raise SpecbenchError(f"dataset '{name}': {url} can't be fetched ({error}); give `path`, a copy of it") from None
    return path


def read_published(path: Path, prompt_of: PromptOf) -> tuple[Prompt, ...]:
    """Every prompt of a JSONL, JSON (a list) or parquet file. Raises SpecbenchError for the first row of another shape."""
    prompts: dict[str, Prompt] = {}
    for number, row in enumerate(_rows(path), 1):
        try:
            prompt = prompt_of(row, number)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise SpecbenchError(str(Problem(str(path), number, f"is no row of this dataset: {what}"))) from None
        if prompt is not None:
            prompts.setdefault(prompt.id, prompt)
    if not prompts:
        raise SpecbenchError(f"{path}: the file holds no prompt")
    return tuple(prompts.values())


def _rows(path: Path) -> Sequence[Row]:
    try:
        if path.suffix == ".parquet":
            return _parquet_rows(path)
        data = path.read_bytes()
    except OSError as error:
        raise SpecbenchError(f"{path}: can't be read: {(error.strerror or str(error)).lower()}") from None
    whole = data.lstrip()[:1] == b"["
    texts = [data] if whole else data.splitlines()
    rows: list[Row] = []
    for number, text in enumerate(texts, 1):
        if text.strip():
            rows += _decoded(path, number, text, whole)
    return rows


def _decoded(path: Path, number: int, text: bytes, whole: bool) -> list[Row]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SpecbenchError(str(Problem(str(path), number, f"is not JSON ({error})"))) from None
    rows = value if whole else [value]
    if not all(isinstance(row, dict) for row in rows):
        raise SpecbenchError(str(Problem(str(path), number, "is not a JSON object")))
    return list(rows)


def _parquet_rows(path: Path) -> Sequence[Row]:
    import pandas

    try:
        rows: list[Row] = pandas.read_parquet(path).to_dict("records")
    except ImportError:
        raise SpecbenchError(f"{path}: parquet needs pyarrow: pip install 'specbench[hub]'") from None
    except (OSError, ValueError) as error:
        raise SpecbenchError(f"{path}: is no parquet file that can be read: {str(error).splitlines()[0]}") from None
    return rows


def text_of(row: Row, key: str) -> str:
    """Raises KeyError and ValueError."""
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`{key}` should be a text that isn't empty")
    return value


def turns_of(row: Row, *keys: str) -> tuple[str, ...]:
    """The list of the first of these keys that is there. Raises KeyError and ValueError."""
    key = next((key for key in keys if key in row), keys[0])
    turns = tuple(row[key])
    if isinstance(row[key], str) or not turns or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise ValueError(f"`{key}` should be a list of texts")
    return turns
