"""Headers of weight files: names and shapes, without the weights."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from specbench.checkpoints import Shape

LARGEST_HEADER_BYTES: Final = 100_000_000
"""safetensors' own limit."""
LARGEST_TEXT_BYTES: Final = 100_000_000
LARGEST_LIST_COUNT: Final = 10_000_000
LARGEST_DEPTH_COUNT: Final = 4
SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT: Final = 8
LIST: Final = 9


def safetensors_shapes(path: Path) -> dict[str, Shape]:
    """Raises OSError or ValueError, in a few words, when the file has no readable header."""
    with path.open("rb") as file:
        (header_bytes,) = struct.unpack("<Q", _exactly(file, 8))
        if header_bytes > LARGEST_HEADER_BYTES:
            raise ValueError(f"{path.name} has no safetensors header")
        return shapes_of(json.loads(_exactly(file, header_bytes)))


def shapes_of(header: Any) -> dict[str, Shape]:
    """Of a header's JSON. Raises ValueError when it is something else."""
    if not isinstance(header, dict):
        raise ValueError("the safetensors header is no JSON object")
    found: dict[str, Shape] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("shape"), list):
            raise ValueError(f"the safetensors header gives no shape for {name}")
        found[name] = tuple(int(one) for one in entry["shape"])
    return found


def gguf_metadata(path: Path) -> dict[str, Any]:
    """The keys of a GGUF file; of a list only its length, under `<key>.count`. Raises OSError or ValueError."""
    with path.open("rb") as file:
        if _exactly(file, 4) != b"GGUF":
            raise ValueError(f"{path.name} is no GGUF file")
        _, _, key_count = struct.unpack("<IQQ", _exactly(file, 20))
        return dict(_pair(file) for _ in range(min(key_count, LARGEST_LIST_COUNT)))


def _pair(file: BinaryIO) -> tuple[str, Any]:
    name = _text(file)
    (kind,) = struct.unpack("<I", _exactly(file, 4))
    if kind != LIST:
        return name, _value(file, kind)
    return f"{name}.count", sum(1 for _ in _list(file, 1))


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == TEXT:
        return _text(file)
    if kind not in SCALARS:
        raise ValueError(f"GGUF value of the unknown type {kind}")
    code = "<" + SCALARS[kind]
    return struct.unpack(code, _exactly(file, struct.calcsize(code)))[0]


def _list(file: BinaryIO, depth_count: int) -> Iterator[Any]:
    kind, count = struct.unpack("<IQ", _exactly(file, 12))
    if count > LARGEST_LIST_COUNT or depth_count > LARGEST_DEPTH_COUNT:
        raise ValueError("GGUF list too long")
    for _ in range(count):
        yield sum(1 for _ in _list(file, depth_count + 1)) if kind == LIST else _value(file, kind)


def _text(file: BinaryIO) -> str:
    (length_bytes,) = struct.unpack("<Q", _exactly(file, 8))
    if length_bytes > LARGEST_TEXT_BYTES:
        raise ValueError("GGUF text too long")
    return _exactly(file, length_bytes).decode("utf-8", "replace")


def _exactly(file: BinaryIO, size_bytes: int) -> bytes:
    data = file.read(size_bytes)
    if len(data) != size_bytes:
        raise ValueError("the file ends inside its header")
    return data
