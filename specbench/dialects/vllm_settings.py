"""What vLLM's start-up lines say of the arguments it resolved, under neutral names. Pure.

Two lines tell: `non-default args: {…}`, which holds what was asked for, and `Initializing a V1 LLM engine … with config:`,
which holds what became of it. vLLM has a page for it (`/server_info`) as well, but only for developers, and it also lists
the machine's environment, which is nobody's business.
"""

import re
from typing import Any, Final

from specbench.dialects import LogLine
from specbench.dialects.vllm_events import settings

ASKED: Final = {
    "max_num_seqs": "max_running_requests",
    "max_num_batched_tokens": "max_batched_tokens",
    "block_size": "block_size_tokens",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "attention_backend": "attention_backend",
}
RESOLVED: Final = {
    "model": "model_path",
    "dtype": "dtype",
    "max_seq_len": "context_length_tokens",
    "tensor_parallel_size": "tensor_parallel",
    "data_parallel_size": "data_parallel",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "seed": "seed",
    "enable_chunked_prefill": "chunked_prefill",
}
WORD: Final = r"('[^']*'|-?[\w.]+)"
GRAPHS: Final = re.compile(r"'?cudagraph_mode'?[=:] *<?(?:CUDAGraphMode\.)?(\w+)")


def resolved_of(line: LogLine) -> dict[str, Any]:
    """Empty for all other lines."""
    if line.name == "arguments":
        return _named(line.text, ASKED)
    if line.name == "kv_cache" and isinstance(line.value.get("tokens"), int):
        return {"max_total_tokens": line.value["tokens"]}
    return _configured(line.text) if line.name == "configuration" else {}


def _configured(text: str) -> dict[str, Any]:
    """The speculative configuration has a `model` and a `method` of its own and is read apart."""
    said = settings(text)
    bare = re.sub(r"speculative_config=SpeculativeConfig\([^)]*\)", "", text)
    found = _named(bare, RESOLVED)
    if isinstance(found.get("dtype"), str):
        found["dtype"] = found["dtype"].removeprefix("torch.")
    caching = _value(bare, "enable_prefix_caching")
    if caching is not None:
        found["prefix_cache_disabled"] = caching is False
    graphs = _graphs(bare)
    if graphs is not None:
        found["cuda_graph"] = graphs
    if "version" in said or (version := re.search(r"LLM engine \(v([\w.+]+)\)", text)) is None:
        return found | _speculation(said)
    return found | {"version": version.group(1)} | _speculation(said)


def _speculation(said: dict[str, Any]) -> dict[str, Any]:
    found = {"algorithm": said.get("method"), "drafter_path": said.get("drafter")}
    if isinstance(said.get("k"), int):
        found["draft_tokens"] = said["k"] + 1
    return {name: value for name, value in found.items() if value is not None}


def _graphs(text: str) -> bool | None:
    """Eager means none; otherwise the compilation's mode says, where the version has one."""
    if _value(text, "enforce_eager") is True:
        return False
    mode = GRAPHS.search(text)
    return None if mode is None else mode.group(1) != "NONE"


def _named(text: str, names: dict[str, str]) -> dict[str, Any]:
    values = {neutral: _value(text, name) for name, neutral in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _value(text: str, name: str) -> Any:
    """`name=value` or `'name': value` with a plain value; None for None and for anything else."""
    found = re.search(rf"(?<![\w.])'?{name}'?(?:=|: ){WORD}(?=[,}})\s]|$)", text)
    if found is None or found.group(1) == "None":
        return None
    word = found.group(1)
    if word in ("True", "False"):
        return word == "True"
    if re.fullmatch(r"-?\d{1,15}", word):
        return int(word)
    return float(word) if re.fullmatch(r"-?\d{1,9}\.\d{1,9}", word) else word.strip("'")
