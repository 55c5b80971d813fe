"""What a checkpoint says of itself: `config.json` and the headers of its weight files. No weight is ever read.

What can't be read is unknown, with the reason, and never an error: a check that lacks a fact keeps silent.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

Shape = tuple[int, ...]

CONTEXT_KEYS: Final = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
"""In the order in which SGLang asks them."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """A target or a drafter."""

    name: str
    """The path as the command line has it."""
    config: dict[str, Any] | None = None
    """None: not read."""
    tensors: dict[str, Shape] | None = None
    """Shape by name; None: not read. May be the part that the headers read so far tell."""
    weight_bytes: int | None = None
    """Of its weight files together; None: not known."""
    unknown: str = ""
    """Why something could not be read, in a few words."""
    is_absent: bool = False
    """A local path that does not exist."""
    format: str = "safetensors"
    metadata: dict[str, Any] = field(default_factory=dict)
    """GGUF: the file's own keys, without its lists."""

    @property
    def text(self) -> Mapping[str, Any]:
        """The language model's part of the configuration: multimodal models wrap it."""
        config = self.config or {}
        inner = config.get("text_config") or config.get("llm_config") or config.get("language_config")
        return {**config, **inner} if isinstance(inner, dict) else config

    @property
    def architectures(self) -> tuple[str, ...]:
        """The outer name first, then the wrapped one."""
        config = self.config or {}
        outer = _names(config.get("architectures"))
        return tuple(dict.fromkeys((*outer, *_names(self.text.get("architectures")))))

    @property
    def hidden_width(self) -> int | None:
        """Width of a hidden state."""
        return self.integer("hidden_size", "n_embd", "d_model")

    @property
    def layer_count(self) -> int | None:
        return self.integer("num_hidden_layers", "n_layer")

    @property
    def vocabulary_count(self) -> int | None:
        return self.integer("vocab_size")

    @property
    def draft_vocabulary_count(self) -> int | None:
        """None also when the drafter uses the target's whole vocabulary."""
        return self.integer("draft_vocab_size")

    @property
    def mtp_layer_count(self) -> int:
        """Layers for multi-token prediction inside the checkpoint; 0 when the configuration names none."""
        return self.integer("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers") or 0

    @property
    def context_tokens(self) -> int | None:
        """The longest sequence, as SGLang derives it: a `rope_scaling` factor counts, unless the length contains it."""
        longest = self.integer(*CONTEXT_KEYS)
        return None if longest is None else int(longest * _rope_factor(self.text.get("rope_scaling")))

    @property
    def auxiliary_layer_ids(self) -> tuple[int, ...]:
        """Layers of the target whose states an EAGLE-3 drafter reads; empty when the engine's default is meant."""
        inner = self.text.get("eagle_config")
        ids = inner.get("eagle_aux_hidden_state_layer_ids") if isinstance(inner, dict) else None
        ids = ids or self.text.get("eagle_aux_hidden_state_layer_ids")
        return tuple(one for one in ids if isinstance(one, int)) if isinstance(ids, list) else ()

    @property
    def auxiliary_layer_count(self) -> int:
        """How many of them: stated, by their ids, else 3."""
        return self.integer("num_aux_hidden_states") or len(self.auxiliary_layer_ids) or 3

    def integer(self, *names: str) -> int | None:
        """The first of these keys that holds a whole number."""
        values = (self.text.get(name) for name in names)
        return next((one for one in values if isinstance(one, int) and not isinstance(one, bool)), None)

    def shape(self, name: str) -> Shape | None:
        """Of a tensor by its name, whatever prefix the checkpoint puts before it; None when there is none."""
        tensors = self.tensors or {}
        if name in tensors:
            return tensors[name]
        return next((shape for key, shape in tensors.items() if key.endswith("." + name)), None)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _rope_factor(scaling: Any) -> float:
    if not isinstance(scaling, dict) or "original_max_position_embeddings" in scaling:
        return 1.0
    factor = scaling.get("factor")
    plain = isinstance(factor, int | float) and scaling.get("rope_type", scaling.get("type")) != "llama3"
    return float(factor) if plain and factor is not None else 1.0
