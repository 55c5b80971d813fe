"""Checkpoints from folders and files; what can't be read is unknown, with the reason."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from specbench.checkpoints import Checkpoint
from specbench.checkpoints.kinds import kind_of
from specbench.checkpoints.read import read_checkpoint


def write_weights(path: Path, **shapes: list[int]) -> None:
    header = {name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    data = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(data)) + data)


def folder(path: Path, config: Any = None) -> Path:
    (path / "config.json").write_text(json.dumps(config or {"architectures": ["LlamaForCausalLMEagle3"]}))
    return path


def test_a_folder(tmp_path: Path) -> None:
    write_weights(folder(tmp_path) / "model.safetensors", d2t=[32000])
    found = read_checkpoint(str(tmp_path))
    assert (found.tensors, found.unknown, kind_of(found)) == ({"d2t": (32000,)}, "", "eagle3")


def test_a_sharded_folder(tmp_path: Path) -> None:
    write_weights(folder(tmp_path) / "a.safetensors", one=[1])
    write_weights(tmp_path / "b.safetensors", two=[2, 3])
    index = {"weight_map": {"one": "a.safetensors", "two": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert read_checkpoint(str(tmp_path)).tensors == {"one": (1,), "two": (2, 3)}
    (tmp_path / "b.safetensors").unlink()
    found = read_checkpoint(str(tmp_path))
    assert found.tensors is None
    assert found.config is not None
    assert "No such file" in found.unknown


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 8, struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 9) + b"{}", b"\x01" + b"\0" * 7 + b"{"]
)
def test_broken_weights_are_unknown(tmp_path: Path, data: bytes) -> None:
    (folder(tmp_path) / "model.safetensors").write_bytes(data)
    found = read_checkpoint(str(tmp_path))
    assert found.tensors is None
    assert found.unknown.startswith("weights: ")


@pytest.mark.parametrize(("text", "reason"), [("{", "is not valid JSON"), ("[]", "no JSON object")])
def test_a_broken_config_is_unknown(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "config.json").write_text(text)
    found = read_checkpoint(str(tmp_path))
    assert found.config is None
    assert reason in found.unknown


def test_what_is_not_there(tmp_path: Path) -> None:
    found = read_checkpoint(str(tmp_path / "none"))
    assert found.is_absent
    assert found.unknown == "the folder does not exist"


def test_a_wrapped_model() -> None:
    inner = {"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 7168, "num_nextn_predict_layers": 1}
    one = Checkpoint(name="t", config={"architectures": ["KimiK25ForConditionalGeneration"], "text_config": inner})
    assert (one.hidden_width, one.mtp_layer_count) == (7168, 1)
    assert one.architectures == ("KimiK25ForConditionalGeneration", "DeepseekV3ForCausalLM")


@pytest.mark.parametrize(
    ("tensors", "kind"),
    [
        ({"midlayer.mlp.up_proj.weight": (1,)}, "eagle3"),
        ({"fc.weight": (8, 24)}, "eagle3"),
        ({"fc.weight": (8, 16)}, "eagle1"),
        ({"model.layers.0.eh_proj.weight": (8, 16)}, "mtp"),
        ({"lm_head.weight": (8, 16)}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_kinds_by_tensors(tensors: dict[str, tuple[int, ...]], kind: str) -> None:
    assert kind_of(Checkpoint(name="d", tensors=tensors)) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Eagle3DeepseekV2ForCausalLM", "eagle3"),
        ("LlamaForCausalLMEagle", "eagle1"),
        ("DeepseekV3ForCausalLMNextN", "mtp"),
        ("DFlashDraftModel", "dflash"),
    ],
)
def test_kinds_by_name(name: str, kind: str) -> None:
    assert kind_of(Checkpoint(name="d", config={"architectures": [name]})) == kind


def gguf_text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def test_gguf(tmp_path: Path) -> None:
    pairs = [gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text("llama")]
    pairs += [gguf_text("llama.block_count") + struct.pack("<II", 4, 22)]
    pairs += [gguf_text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + gguf_text("a") + gguf_text("b")]
    path = tmp_path / "d.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))
    found = read_checkpoint(str(path))
    assert (found.layer_count, found.vocabulary_count, kind_of(found)) == (22, 2, "plain")
    path.write_bytes(path.read_bytes()[:-3])
    assert read_checkpoint(str(path)).unknown == "the file ends inside its header"
