"""Reads a checkpoint from a local folder, a GGUF file or the hub."""

import json
from pathlib import Path
from typing import Any, Final

from specbench.checkpoints import Checkpoint, Shape
from specbench.checkpoints.headers import gguf_metadata, safetensors_shapes
from specbench.models import is_missing

INDEX: Final = "model.safetensors.index.json"
WEIGHTS: Final = "*.safetensors"


def read_checkpoint(path: str, revision: str | None = None) -> Checkpoint:
    """Never raises: what can't be read is unknown, and `unknown` says why."""
    place = Path(path).expanduser()
    if place.is_dir():
        return read_folder(place, path)
    if place.is_file():
        return _read_gguf(place, path)
    if is_missing(path):
        return Checkpoint(name=path, unknown="the folder does not exist", is_absent=True)
    from specbench.checkpoints.hub import read_repository

    return read_repository(path, revision)


def read_folder(folder: Path, name: str) -> Checkpoint:
    """`config.json`, then every weight file's header."""
    reasons: list[str] = []
    config = _config(folder, reasons)
    tensors: dict[str, Shape] | None = None
    try:
        tensors = _shapes(folder)
    except (OSError, ValueError) as error:
        reasons.append(f"weights: {_few_words(error)}")
    if tensors is None and not reasons:
        reasons.append("it holds no .safetensors file")
    size_bytes = sum(path.stat().st_size for path in _weight_files(folder)) if tensors is not None else None
    return Checkpoint(name=name, config=config, tensors=tensors, weight_bytes=size_bytes, unknown="; ".join(reasons))


def _config(folder: Path, reasons: list[str]) -> dict[str, Any] | None:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        reasons.append("it holds no config.json")
        return None
    except (OSError, ValueError) as error:
        reasons.append(f"config.json: {_few_words(error)}")
        return None
    if isinstance(config, dict):
        return config
    reasons.append("config.json is no JSON object")
    return None


def _shapes(folder: Path) -> dict[str, Shape] | None:
    """None without a weight file. A file that the index names and that is not there makes all unknown."""
    files = _weight_files(folder)
    if not files:
        return None
    return {name: shape for path in files for name, shape in safetensors_shapes(path).items()}


def _weight_files(folder: Path) -> list[Path]:
    return _indexed(folder) or sorted(folder.glob(WEIGHTS))


def _indexed(folder: Path) -> list[Path]:
    if not (folder / INDEX).is_file():
        return []
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    mapping = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(mapping, dict) or not all(isinstance(one, str) for one in mapping.values()):
        raise ValueError(f"{INDEX} has no weight_map")
    return [folder / one for one in sorted(set(mapping.values()))]


def _read_gguf(path: Path, name: str) -> Checkpoint:
    try:
        found = gguf_metadata(path)
    except (OSError, ValueError) as error:
        return Checkpoint(name=name, unknown=_few_words(error), format="gguf")
    family = str(found.get("general.architecture", ""))
    named = {
        "hidden_size": found.get(f"{family}.embedding_length"),
        "num_hidden_layers": found.get(f"{family}.block_count"),
        "max_position_embeddings": found.get(f"{family}.context_length"),
        "vocab_size": found.get("tokenizer.ggml.tokens.count") or found.get(f"{family}.vocab_size"),
    }
    config: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    return Checkpoint(
        name=name, config={"model_type": family, **config}, metadata=found, weight_bytes=path.stat().st_size, format="gguf"
    )


def _few_words(error: Exception) -> str:
    if isinstance(error, OSError):
        return str(error.strerror or error)
    return "is not valid JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else str(error)
