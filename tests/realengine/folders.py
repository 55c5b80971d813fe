"""Weights to folders that vLLM, SGLang and transformers load: config.json, tokenizer files, model.safetensors."""

import json
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from tests.realengine import llama
from tests.realengine.llama import Weights

CONTEXT_TOKENS: Final = 512
TEMPLATE: Final = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
FLAGS: Final = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def write_llama(folder: Path, weights: Weights, inner: int) -> None:
    """A target or a draft model."""
    hidden = weights["model.norm.weight"].shape[0]
    _write(folder, _config("LlamaForCausalLM", hidden, inner, llama.layer_count(weights)), weights)
    _write_tokenizer(folder)


def write_head(
    folder: Path, weights: Weights, inner: int, target_hidden: int, ids: Any, layer_ids: tuple[int, ...] = ()
) -> None:
    """An EAGLE-3 head. `ids`: target id by draft id, ascending; stored as `d2t` (offsets) and `t2d` (a mask). Without
    `layer_ids` the engine's default is meant."""
    hidden = weights["norm.weight"].shape[0]
    mask = torch.zeros(llama.VOCABULARY_COUNT, dtype=torch.bool)
    mask[ids] = True
    config = _config("LlamaForCausalLMEagle3", hidden, inner, 1)
    config |= {"draft_vocab_size": len(ids), "target_hidden_size": target_hidden}
    if layer_ids:
        config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": list(layer_ids)}
    _write(folder, config, weights | {"d2t": ids - torch.arange(len(ids)), "t2d": mask})


def _config(architecture: str, hidden: int, inner: int, layers: int) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": llama.HEAD_COUNT,
        "num_key_value_heads": llama.HEAD_COUNT,
        "head_dim": llama.HEAD_WIDTH,
        "vocab_size": llama.VOCABULARY_COUNT,
        "max_position_embeddings": CONTEXT_TOKENS,
        "rope_theta": llama.ROPE_BASE,
        "rms_norm_eps": llama.EPSILON,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
        "torch_dtype": "float32",
    }


def _write(folder: Path, config: dict[str, Any], weights: Weights) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file({name: one.detach().contiguous() for name, one in weights.items()}, folder / "model.safetensors")


def _write_tokenizer(folder: Path) -> None:
    """A byte is a token; its id is its value."""
    vocabulary = {character: byte for byte, character in enumerate(byte_characters())}
    places = range(len(vocabulary), len(vocabulary) + len(llama.SPECIAL))
    split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": place, "content": word, **FLAGS} for place, word in zip(places, llama.SPECIAL, strict=True)],
        "normalizer": None,
        "pre_tokenizer": split,
        "post_processor": None,
        "decoder": split,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": CONTEXT_TOKENS,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def byte_characters() -> list[str]:
    """The printable character that stands for each byte in byte-level vocabularies."""
    plain = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    spare = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]
