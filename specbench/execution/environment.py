"""What the run ran on. What can't be read is null, with the reason beside it."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

import specbench
from specbench.execution.slots import gpus, smi
from specbench.suite import Server, Suite

SECRET_WORDS = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL")
HIDDEN = "(hidden)"
GIT_TIMEOUT_S = 10.0


class UnreadableError(Exception):
    """Why a value is null."""


def environment() -> dict[str, Any]:
    """Names and their values; `reasons` says why a value is null."""
    reasons: dict[str, str] = {}
    values = {name: _value(name, read, reasons) for name, read in READERS.items()}
    return {**values, "reasons": reasons}


def _value(name: str, read: Callable[[], Any], reasons: dict[str, str]) -> Any:
    try:
        return read()
    except (UnreadableError, OSError, ValueError) as error:
        reasons[name] = str(error)
        return None


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    raise UnreadableError("/proc/cpuinfo has no model name")


def _cpus_allowed() -> int:
    return len(os.sched_getaffinity(0))


def _commit() -> str:
    """`-dirty` is added when tracked files were changed. A checkout that merely holds the environment is not ours."""
    folder = Path(specbench.__file__).parent
    _git(folder, "ls-files", "--error-unmatch", "__init__.py")
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *words: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise UnreadableError("there is no git here")
    try:
        done = subprocess.run(
            [git, "-C", str(folder), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"git did not answer within {GIT_TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise UnreadableError("specbench does not run from a git checkout of its own")
    return done.stdout.strip()


def _gpus() -> list[dict[str, Any]]:
    found = [{"index": gpu.index, "name": gpu.name, "memory_bytes": gpu.memory_bytes} for gpu in gpus()]
    if not found:
        raise UnreadableError("nvidia-smi shows no GPU")
    return found


def _driver() -> str:
    versions = smi("driver_version").split()
    if not versions:
        raise UnreadableError("nvidia-smi shows no driver")
    return versions[0]


def _proxy() -> str:
    from specbench.execution.transport import proxy_note

    return proxy_note() or "none in the environment"


def _selftest() -> dict[str, Any]:
    from specbench.execution.selftest import last

    found = last()
    if found is None:
        raise UnreadableError("none was run on this machine: specbench selftest")
    return dict(msgspec.to_builtins(found))


READERS: dict[str, Callable[[], Any]] = {
    "host": platform.node,
    "kernel": platform.platform,
    "machine": platform.machine,
    "cpu_model": _cpu_model,
    "cpu_count": lambda: psutil.cpu_count(logical=True),
    "cpu_allowed_count": _cpus_allowed,
    "memory_bytes": lambda: psutil.virtual_memory().total,
    "python": platform.python_version,
    "specbench_version": lambda: specbench.__version__,
    "specbench_commit": _commit,
    "gpus": _gpus,
    "gpu_driver": _driver,
    "proxy": _proxy,
    "selftest": _selftest,
}


def is_secret(name: str) -> bool:
    """Whether a variable or flag of this name holds something that must not be stored."""
    plain = name.upper().replace("-", "_")
    return plain.endswith(SECRET_WORDS)


def without_secrets(env: Mapping[str, object]) -> dict[str, str]:
    """The same variables; the values of secret ones are hidden."""
    return {name: HIDDEN if is_secret(name) else str(value) for name, value in env.items()}


def words_without_secrets(argv: Sequence[str]) -> tuple[str, ...]:
    """The same words; what follows a secret flag (`--api-key X`, `--api-key=X`) is hidden."""
    words: list[str] = []
    hide_next = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        secret = flag.startswith("--") and is_secret(flag)
        words.append(HIDDEN if hide_next else f"{flag}={HIDDEN}" if secret and equals else word)
        hide_next = secret and not equals
    return tuple(words)


def text_without_secrets(text: str, suite: Suite) -> str:
    """A suite's text with every secret value of its variants hidden, wherever it stands."""
    values = {value for variant in suite.variants for value in _secret_values(variant.server)}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text


def _secret_values(server: Server) -> Iterator[str]:
    yield from (str(value) for name, value in server.env.items() if is_secret(name) and value != "")
    words = [str(word) for word in server.args]
    for word, shown in zip(words, words_without_secrets(words), strict=True):
        if shown != word:
            yield word.partition("=")[2] if shown.endswith(f"={HIDDEN}") else word


def tree_without_secrets(value: Any) -> Any:
    """A suite as JSON, with the secrets of each `env` and `args` hidden."""
    if isinstance(value, dict):
        return {name: _field_without_secrets(name, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [tree_without_secrets(one) for one in value]
    return value


def _field_without_secrets(name: str, value: Any) -> Any:
    if name == "env" and isinstance(value, dict):
        return without_secrets(value)
    if name == "args" and isinstance(value, list | tuple):
        return list(words_without_secrets([str(word) for word in value]))
    return tree_without_secrets(value)
