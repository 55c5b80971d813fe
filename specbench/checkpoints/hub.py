"""The hub, through huggingface_hub where it is installed: `config.json` and range requests for headers."""

import json
from pathlib import Path
from typing import Any

from specbench.checkpoints import Checkpoint, Shape
from specbench.models.hub import library, offline_reason


def read_repository(name: str, revision: str | None) -> Checkpoint:
    """From the local cache when offline; never raises. The token comes from the environment, as the library reads it."""
    try:
        hub = library()
    except ImportError:
        return Checkpoint(name=name, unknown="huggingface_hub is not installed: pip install 'specbench[hub]'")
    offline = offline_reason()
    try:
        path = hub.hf_hub_download(name, "config.json", revision=revision, local_files_only=offline is not None)
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except Exception as error:  # noqa: BLE001  the library raises its own, requests' or httpx's, by its version
        return Checkpoint(name=name, unknown=_reason(error, offline))
    if not isinstance(config, dict):
        return Checkpoint(name=name, unknown="config.json is no JSON object")
    if offline:
        return Checkpoint(name=name, config=config, unknown=f"weights: {offline}")
    return _with_tensors(hub, name, revision, config)


def _with_tensors(hub: Any, name: str, revision: str | None, config: dict[str, Any]) -> Checkpoint:
    try:
        metadata = hub.get_safetensors_metadata(name, revision=revision)
        listed = [one for file in metadata.files_metadata.values() for one in file.tensors.items()]
        tensors: dict[str, Shape] = {key: tuple(info.shape) for key, info in listed}
        weight_bytes = sum(info.data_offsets[1] - info.data_offsets[0] for _, info in listed)
    except Exception as error:  # noqa: BLE001  as above
        return Checkpoint(name=name, config=config, unknown=f"weights: {_reason(error, None)}")
    return Checkpoint(name=name, config=config, tensors=tensors, weight_bytes=weight_bytes)


def _reason(error: Exception, offline: str | None) -> str:
    if offline:
        return f"{offline}, and not in the cache"
    return f"the hub gave no answer ({type(error).__name__})"
