"""The values of a few weights, read by memory map in pieces: whether they are zero, constant or no numbers."""

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

TOLD: Final = ("fc.weight", "lm_head.weight")
"""What a drafter can't do without: how it takes the target's states, and how it says a token."""
PIECE_COUNT: Final = 1 << 22
"""Values held at a time: 32 MiB as doubles."""
KINDS: Final = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""numpy's word for each of safetensors' types; BF16 is the upper half of an F32."""


class Weights(Struct, frozen=True, kw_only=True):
    """One tensor's values in figures."""

    name: str
    file: str
    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0
    low: float = 0.0
    high: float = 0.0
    bad_count: int = 0
    """NaN or infinite."""
    unknown: str = ""
    """Why it could not be read."""


def read_weights(folder: Path) -> tuple[Weights, ...]:
    """Of the tensors in `TOLD` that the folder's safetensors hold, under whatever prefix. Never raises."""
    return tuple(one for path in sorted(folder.glob("*.safetensors")) for one in _of_file(path))


def _of_file(path: Path) -> Iterator[Weights]:
    try:
        with path.open("rb") as file:
            (header_bytes,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(header_bytes)) if header_bytes < path.stat().st_size else {}
    except (OSError, ValueError, struct.error) as error:
        yield Weights(name="", file=path.name, unknown=f"no header that can be read ({type(error).__name__})")
        return
    for name, entry in header.items() if isinstance(header, dict) else ():
        if not isinstance(entry, dict):
            yield Weights(name=name, file=path.name, unknown="its entry in the header is no object")
        elif any(name == told or name.endswith("." + told) for told in TOLD) and "midlayer." not in name:
            yield _of_tensor(path, name, entry, 8 + header_bytes)


def _of_tensor(path: Path, name: str, entry: Any, base: int) -> Weights:
    import numpy

    kind = KINDS.get(entry.get("dtype", ""))
    if kind is None:
        return Weights(name=name, file=path.name, unknown=f"values of type {entry.get('dtype')} are not read")
    try:
        begin, end = entry["data_offsets"]
        values = numpy.memmap(
            path, dtype=kind, mode="r", offset=base + begin, shape=((end - begin) // numpy.dtype(kind).itemsize,)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Weights(name=name, file=path.name, unknown=f"its values are not where the header says ({error})")
    return _figures(Weights(name=name, file=path.name), values, entry["dtype"] == "BF16")


def _figures(blank: Weights, values: Any, halved: bool) -> Weights:
    import numpy
    from msgspec.structs import replace

    count, bad_count, total, squares, low, high = 0, 0, 0.0, 0.0, math.inf, -math.inf
    for begin in range(0, len(values), PIECE_COUNT):
        piece = values[begin : begin + PIECE_COUNT]
        numbers = (piece.astype("<u4") << 16).view("<f4") if halved else piece
        finite = numbers[numpy.isfinite(numbers)].astype("f8")
        count, bad_count = count + len(numbers), bad_count + len(numbers) - len(finite)
        if len(finite):
            total, squares = total + float(finite.sum()), squares + float((finite * finite).sum())
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    good_count = count - bad_count
    if not good_count:
        return replace(blank, count=count, bad_count=bad_count)
    mean = total / good_count
    deviation = math.sqrt(max(0.0, squares / good_count - mean * mean))
    return replace(blank, count=count, bad_count=bad_count, mean=mean, deviation=deviation, low=low, high=high)
