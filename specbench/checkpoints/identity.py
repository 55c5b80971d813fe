"""Which weights and which tokenizer a checkpoint has, told without reading hundreds of gigabytes."""

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from specbench.checkpoints.headers import LARGEST_HEADER_BYTES

WEIGHTS: Final = (".safetensors", ".gguf", ".bin", ".pt", ".pth")
TOKENIZERS: Final = (
    "tokenizer.json",
    "tokenizer.model",
    "tiktoken.model",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "openvino_tokenizer.xml",
    "openvino_tokenizer.bin",
)
SAMPLES_COUNT: Final = 8
SAMPLE_BYTES: Final = 16 << 10
METHOD: Final = f"names, sizes, safetensors headers and {SAMPLES_COUNT} samples of {SAMPLE_BYTES >> 10} KiB a file"


def weights_identity(path: Path) -> dict[str, Any]:
    """`{"sha256", "files_count", "bytes", "of"}` of a folder's weight files, or of one file.

    Weights that were trained on share names, sizes and headers with what they came from: so each file is sampled evenly as
    well, 128 KiB of it. A change that touches none of the samples is not seen. Raises OSError, ValueError without weights.
    """
    files = [path] if path.is_file() else sorted(one for one in path.iterdir() if one.suffix in WEIGHTS and one.is_file())
    files = [one for one in files if one.name not in TOKENIZERS]
    if not files:
        raise ValueError(f"{path} holds no weight file ({', '.join(WEIGHTS)})")
    whole = hashlib.sha256()
    for one in files:
        whole.update(_digest(one))
    size_bytes = sum(one.stat().st_size for one in files)
    return {"sha256": whole.hexdigest(), "files_count": len(files), "bytes": size_bytes, "of": METHOD}


def _digest(path: Path) -> bytes:
    found = hashlib.sha256()
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        found.update(f"{path.name}\0{size_bytes}\0".encode())
        if path.suffix == ".safetensors":
            found.update(_header(file, size_bytes))
        for offset in _offsets(size_bytes):
            file.seek(offset)
            found.update(file.read(SAMPLE_BYTES))
    return found.digest()


def _header(file: BinaryIO, size_bytes: int) -> bytes:
    """Empty where the file is too short or no safetensors; its samples tell it then."""
    start = file.read(8)
    length_bytes = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    return file.read(length_bytes) if length_bytes <= min(LARGEST_HEADER_BYTES, size_bytes) else b""


def _offsets(size_bytes: int) -> Iterator[int]:
    """The first samples and the last ones are the file's own ends."""
    last = max(0, size_bytes - SAMPLE_BYTES)
    yield from dict.fromkeys(last * place // (SAMPLES_COUNT - 1) for place in range(SAMPLES_COUNT))


def tokenizer_digests(folder: Path) -> dict[str, str]:
    """sha256 of each of its files, by name. Raises OSError, ValueError where there is none."""
    found = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in TOKENIZERS if (folder / name).is_file()
    }
    if not found:
        raise ValueError(f"{folder} holds no tokenizer")
    return found
