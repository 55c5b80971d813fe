"""The hub, through huggingface_hub where it is installed: `config.json` and range requests for headers."""

import importlib
import json
import os
from pathlib import Path
from typing import Any, Final

from specbench.checkpoints import Checkpoint, Shape

OFFLINE: Final = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
TIMEOUT_S: Final = "5"


def read_repository(name: str, revision: str | None) -> Checkpoint:
    """From the local cache when offline; never raises. The token comes from the environment, as the library reads it."""
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", TIMEOUT_S)
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", TIMEOUT_S)
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        return Checkpoint(name=name, unknown="huggingface_hub is not installed: pip install 'specbench[hub]'")
    offline = any(os.environ.get(one, "").lower() in ("1", "true", "yes", "on") for one in OFFLINE)
    try:
        path = hub.hf_hub_download(name, "config.json", revision=revision, local_files_only=offline)
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except Exception as error:  # noqa: BLE001  the library raises its own, requests' or httpx's, by its version
        return Checkpoint(name=name, unknown=_reason(error, offline))
    if not isinstance(config, dict):
        return Checkpoint(name=name, unknown="config.json is no JSON object")
    if offline:
        return Checkpoint(name=name, config=config, unknown="weights: offline")
    return _with_tensors(hub, name, revision, config)


def _with_tensors(hub: Any, name: str, revision: str | None, config: dict[str, Any]) -> Checkpoint:
    try:
        metadata = hub.get_safetensors_metadata(name, revision=revision)
        tensors: dict[str, Shape] = {
            key: tuple(info.shape) for file in metadata.files_metadata.values() for key, info in file.tensors.items()
        }
    except Exception as error:  # noqa: BLE001  as above
        return Checkpoint(name=name, config=config, unknown=f"weights: {_reason(error, False)}")
    return Checkpoint(name=name, config=config, tensors=tensors)


def _reason(error: Exception, offline: bool) -> str:
    if offline:
        return "offline, and not in the cache"
    return f"the hub gave no answer ({type(error).__name__})"
