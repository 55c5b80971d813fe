"""What one launch ran with, beyond its command: packages of its interpreter, files of its models, prompts, GPUs, host."""

import asyncio
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from specbench import datasets, models
from specbench.checkpoints.identity import tokenizer_digests, weights_identity
from specbench.execution.bench import Bench, interpreter
from specbench.execution.environment import environment
from specbench.execution.nvml import gpu_facts
from specbench.execution.sources import engine_sources
from specbench.execution.unreadable import UnreadableError, read_all
from specbench.plan import Slot
from specbench.suite import Variant

ASK_PACKAGES: Final = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))"
)
ASK_TIMEOUT_S: Final = 60.0
TOLD: Final = ("sglang", "sgl-kernel", "vllm", "torch", "triton", "transformers", "tokenizers", "xgrammar", "openvino")
TOLD_BEGINNINGS: Final = ("flashinfer", "nvidia-", "flash-attn", "openvino-", "specbench")
"""Packages whose versions are stored; the sha256 stands for all of them."""
HASHED: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors.index.json",
    "hf_quant_config.json",
)
LARGEST_BYTES: Final = 64 << 20
GENERAL: Final = frozenset({"gpus"})


def launch_environment(bench: Bench, variant: Variant, slot: Slot) -> dict[str, Any]:
    """The host's values and this launch's. What could not be read is null, and `reasons` says why. Takes up to seconds."""
    own = read_all(_readers(bench, variant, slot))
    host = {name: value for name, value in environment().items() if name not in GENERAL}
    reasons = {**host.pop("reasons"), **own.pop("reasons")}
    reasons = {name: why for name, why in reasons.items() if {**host, **own}.get(name) is None}
    now = {"python": interpreter(variant), "load_average_1min": os.getloadavg()[0]}
    return {**host, **now, **own, "reasons": reasons}


async def read_launch(bench: Bench, variant: Variant, slot: Slot) -> dict[str, Any]:
    """The same beside the event loop, in a thread that is gone afterwards: with one thread only, system calls cost less."""
    executor = ThreadPoolExecutor(1)
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, launch_environment, bench, variant, slot)
    finally:
        executor.shutdown(wait=False)


def _readers(bench: Bench, variant: Variant, slot: Slot) -> dict[str, Callable[[], Any]]:
    drafter = bench.suite.drafter_of(variant)
    return {
        "gpus": partial(_gpus, slot.gpu_ids),
        "packages": partial(_packages, variant, bench.rehearsal is not None),
        "model_files": partial(_files, bench.suite.model.path),
        "drafter_files": partial(_files, drafter.path if drafter else None),
        "model_weights": partial(_of_files, weights_identity, bench.suite.model.path),
        "drafter_weights": partial(_of_files, weights_identity, drafter.path if drafter else None),
        "tokenizer": partial(_of_files, tokenizer_digests, bench.suite.model.path),
        "engine_sources": partial(_sources, variant, bench.rehearsal is not None),
        "datasets": lambda: {name: datasets.digest(prompts) for name, prompts in bench.prompts.items()},
        "suite_sha256": lambda: _suite_digest(bench),
    }


def _gpus(gpu_ids: Sequence[int]) -> list[dict[str, Any]]:
    if not gpu_ids:
        raise UnreadableError("this launch holds no GPU")
    return gpu_facts(gpu_ids)


def _sources(variant: Variant, rehearsing: bool) -> dict[str, Any]:
    if variant.server.url and not rehearsing:
        raise UnreadableError("the server is not one of ours: its packages can't be asked")
    return engine_sources(interpreter(variant))


def _packages(variant: Variant, rehearsing: bool) -> dict[str, Any]:
    if variant.server.url and not rehearsing:
        raise UnreadableError("the server is not one of ours: its packages can't be asked")
    return _asked_packages(interpreter(variant))


@cache
def _asked_packages(python: str) -> dict[str, Any]:
    try:
        words = (str(Path(python).expanduser()), "-c", ASK_PACKAGES)
        done = subprocess.run(words, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=False)
        found: dict[str, str] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UnreadableError(f"{python} does not tell its packages: {error}") from None
    lines = "\n".join(sorted(f"{name}=={version}" for name, version in found.items()))
    told = {name: version for name, version in sorted(found.items()) if _is_told(name.lower())}
    return {"count": len(found), "sha256": hashlib.sha256(lines.encode()).hexdigest(), "versions": told}


def _is_told(name: str) -> bool:
    return name in TOLD or name.startswith(TOLD_BEGINNINGS)


@cache
def _files(path: str | None) -> dict[str, Any]:
    """sha256 of a checkpoint's small files, of its chat template wherever that stands, and the sizes of its weights."""
    if path is None:
        raise UnreadableError("this variant has no drafter")
    folder = models.folder_of(path)
    if not folder.is_dir():
        raise UnreadableError(f"{path} is no folder on this machine")
    present = [name for name in HASHED if (folder / name).is_file() and (folder / name).stat().st_size <= LARGEST_BYTES]
    weights = [one for kind in ("*.safetensors", "*.gguf", "*.bin") for one in sorted(folder.glob(kind))]
    return {
        "sha256": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in present},
        "chat_template_sha256": _template_digest(folder),
        "weights_bytes": {one.name: one.stat().st_size for one in weights},
    }


@cache
def _of_files(read: Callable[[Path], dict[str, Any]], path: str | None) -> dict[str, Any]:
    """What `read` says of a checkpoint on this machine; each is read once."""
    if path is None:
        raise UnreadableError("this variant has no drafter")
    place = models.folder_of(path)
    if not place.exists():
        raise UnreadableError(f"{path} is not on this machine, or known to the hub's cache only")
    return read(place)


def _template_digest(folder: Path) -> str | None:
    """None where the folder holds none."""
    whole = folder / "chat_template.jinja"
    if whole.is_file():
        return hashlib.sha256(whole.read_bytes()).hexdigest()
    try:
        template = json.loads((folder / "tokenizer_config.json").read_bytes()).get("chat_template")
    except (OSError, ValueError, AttributeError):
        return None
    return hashlib.sha256(json.dumps(template).encode()).hexdigest() if template else None


def _suite_digest(bench: Bench) -> str:
    """Of the file as it lies there."""
    path = Path(bench.suite.path)
    if not path.is_file():
        raise UnreadableError(f"{path} is no file that could be read again")
    return hashlib.sha256(path.read_bytes()).hexdigest()
