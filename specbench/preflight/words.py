"""What a command line says of speculation, and what the server makes of it. SGLang's words serve for every engine."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from specbench.checkpoints import Checkpoint
from specbench.dialects.sglang_args import flag_values
from specbench.dialects.sglang_version import effective_draft_tokens, parse

SPELLINGS: Final = {
    "speculative-algo": "speculative-algorithm",
    "speculative-draft-model": "speculative-draft-model-path",
    "speculative-dflash-block-size": "speculative-num-draft-tokens",
    "tp": "tp-size",
    "tensor-parallel-size": "tp-size",
    "dp": "dp-size",
    "data-parallel-size": "dp-size",
    "model": "model-path",
}
VLLM_METHODS: Final = {
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "mtp": "NEXTN",
    "deepseek_mtp": "NEXTN",
    "ngram": "NGRAM",
    "draft_model": "STANDALONE",
    "dflash": "DFLASH",
}
LLAMA_TYPES: Final = {
    "draft-simple": "STANDALONE",
    "draft-eagle3": "EAGLE3",
    "draft-mtp": "NEXTN",
    "draft-dflash": "DFLASH",
    "ngram-simple": "NGRAM",
}
MTP_TARGETS: Final = (
    "DeepseekV3",
    "DeepseekV32",
    "DeepseekV4",
    "Glm4Moe",
    "Bailing",
    "MiMo",
    "Ernie4",
    "Qwen3Next",
    "LongcatFlash",
)
SHORT_GUESS: Final = (3, 1, 4)
LONG_GUESS: Final = (5, 4, 8)


class Speculating(Struct, frozen=True, kw_only=True):
    """None where the command line is silent."""

    flags: Mapping[str, str]
    """Value by main name, without the dashes; empty for a switch."""
    algorithm: str | None = None
    draft_path: str | None = None
    draft_tokens: int | None = None
    """As written."""
    steps: int | None = None
    topk: int | None = None
    effective_draft_tokens: int | None = None

    def number(self, *names: str) -> int | None:
        """The first of these flags that holds a whole number."""
        return next((int(self.flags[name]) for name in names if self.flags.get(name, "").isdigit()), None)

    def has(self, *names: str) -> bool:
        """Whether one of these flags stands there."""
        return any(name in self.flags for name in names)

    @property
    def tensor_parallel(self) -> int:
        return self.number("tp-size") or 1


def speculating(engine: str, argv: Sequence[str], version: str | None, target: Checkpoint | None) -> Speculating:
    """Reads the command line of any engine."""
    if engine == "vllm":
        return _vllm(argv)
    if engine in ("llamacpp", "llama.cpp", "llama_cpp"):
        return _llamacpp(argv)
    return _sglang(argv, version, target)


def _sglang(argv: Sequence[str], version: str | None, target: Checkpoint | None) -> Speculating:
    found = flag_values(argv)
    flags = {SPELLINGS.get(name.replace("_", "-"), name.replace("_", "-")): value for name, value in found.items()}
    written = Speculating(flags=flags)
    algorithm = flags.get("speculative-algorithm", "").upper() or None
    steps, topk = written.number("speculative-num-steps"), written.number("speculative-eagle-topk")
    tokens = written.number("speculative-num-draft-tokens")
    return Speculating(
        flags=flags,
        algorithm=None if algorithm == "NONE" else algorithm,
        draft_path=flags.get("speculative-draft-model-path") or None,
        draft_tokens=tokens,
        steps=steps,
        topk=topk,
        effective_draft_tokens=_effective(algorithm, (steps, topk, tokens), version, target),
    )


def _effective(
    algorithm: str | None, numbers: tuple[int | None, int | None, int | None], version: str | None, target: Checkpoint | None
) -> int | None:
    steps, topk, tokens = numbers
    if algorithm in (None, "NONE"):
        return None
    if algorithm == "NGRAM":
        return tokens or 12
    if algorithm in ("DFLASH", "DSPARK", "UNO"):
        return tokens
    if numbers == (None, None, None):
        return guessed(algorithm or "", target, version)[2]
    return effective_draft_tokens(tokens, steps, topk, version)


def guessed(algorithm: str, target: Checkpoint | None, version: str | None) -> tuple[int, int, int]:
    """Steps, top-k and draft tokens that SGLang takes when none of them is given."""
    names = target.architectures if target is not None else ()
    parsed = parse(version)
    if any(name == "LlamaForCausalLM" or name.startswith("Grok") for name in names):
        return LONG_GUESS
    known = any(name.startswith(("Deepseek", "GptOss", "Glm4Moe", "MiMoV2")) for name in names[:1])
    old = parsed is not None and parsed.release < (0, 5)
    return LONG_GUESS if old and not known and algorithm != "STANDALONE" else SHORT_GUESS


def _vllm(argv: Sequence[str]) -> Speculating:
    flags = flag_values(argv)
    config = _object(flags.get("speculative-config", "") or flags.get("speculative_config", ""))
    tokens = config.get("num_speculative_tokens")
    method, path = config.get("method"), config.get("model")
    word = VLLM_METHODS.get(str(method)) or ("STANDALONE" if path and method is None else None)
    proposed = tokens if isinstance(tokens, int) else None
    return Speculating(
        flags={**flags, "tp-size": flags.get("tensor-parallel-size", "1")},
        algorithm=word or (str(method).upper() if method else None),
        draft_path=path if isinstance(path, str) else None,
        draft_tokens=proposed,
        effective_draft_tokens=None if proposed is None else proposed + 1,
    )


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _llamacpp(argv: Sequence[str]) -> Speculating:
    dashed = ["--spec-draft-model" if word in ("-md", "--model-draft") else word for word in argv]
    flags = flag_values(dashed)
    kinds = [one for one in flags.get("spec-type", "").split(",") if one and one != "none"]
    written = Speculating(flags=flags)
    proposed = written.number("spec-ngram-simple-size-m", "spec-draft-n-max", "draft-max", "draft")
    return Speculating(
        flags=flags,
        algorithm=LLAMA_TYPES.get(kinds[0], kinds[0].upper()) if kinds else None,
        draft_path=flags.get("spec-draft-model") or None,
        draft_tokens=proposed,
        effective_draft_tokens=None if proposed is None or not kinds else proposed + 1,
    )


def target_drafts(target: Checkpoint | None) -> bool:
    """Whether the target holds layers for multi-token prediction, so that it needs no drafter beside it."""
    return target is not None and target.mtp_layer_count > 0
