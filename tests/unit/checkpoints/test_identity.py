"""Which weights a checkpoint has, told from a few of its bytes."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from specbench.checkpoints.identity import SAMPLE_BYTES, SAMPLES_COUNT, tokenizer_digests, weights_identity


def write(path: Path, values: bytes, dtype: str = "BF16") -> Path:
    header = json.dumps({"w": {"dtype": dtype, "shape": [len(values) // 2], "data_offsets": [0, len(values)]}}).encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + values)
    return path.parent


def sha(folder: Path) -> Any:
    return weights_identity(folder)["sha256"]


def test_weights_that_were_trained_on_are_others(tmp_path: Path) -> None:
    """Names, sizes and headers stay the same then."""
    count = 4 * SAMPLES_COUNT * SAMPLE_BYTES
    one, same, trained = (
        write(tmp_path / name / "model.safetensors", bytes([value]) * count)
        for name, value in (("a", 1), ("b", 1), ("c", 2))
    )
    assert sha(one) == sha(same) != sha(trained)
    assert weights_identity(one)["files_count"] == 1
    assert weights_identity(one)["bytes"] == (one / "model.safetensors").stat().st_size


def test_names_and_headers_count(tmp_path: Path) -> None:
    values = bytes(64)
    folders = [
        write(tmp_path / "a" / "model.safetensors", values),
        write(tmp_path / "b" / "other.safetensors", values),
        write(tmp_path / "c" / "model.safetensors", values, "F16"),
    ]
    assert len({sha(one) for one in folders}) == 3


def test_only_a_part_of_a_large_file_is_read(tmp_path: Path) -> None:
    large = tmp_path / "model.gguf"
    with large.open("wb") as file:
        file.truncate(1 << 40)  # no disk holds that: it is a hole
    assert weights_identity(large)["bytes"] == 1 << 40


@pytest.mark.parametrize("content", [b"", b"short", struct.pack("<Q", 1 << 60) + b"x" * 99])
def test_a_broken_file_has_an_identity_too(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert len(sha(tmp_path)) == 64


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no weight file"):
        weights_identity(tmp_path)
    with pytest.raises(ValueError, match="holds no tokenizer"):
        tokenizer_digests(tmp_path)
    (tmp_path / "tiktoken.model").write_bytes(b"")
    assert list(tokenizer_digests(tmp_path)) == ["tiktoken.model"]
