"""OpenVINO GenAI behind the front: `python -m specbench.embedded.openvino`, with SGLang's command line."""

import importlib.metadata
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from specbench.embedded.arguments import ServerArguments, parse
from specbench.embedded.interface import EngineFacts
from specbench.embedded.openvino_backend import OpenVinoBackend
from specbench.embedded.openvino_wire import Settings
from specbench.embedded.serve import serve

DIALECT_VERSION = "0.5.23"
RUNNING_REQUESTS = 16
"""For every variant alike: SGLang's cap under speculation would make the arms differ."""
CAPACITY_TOKENS = 32768
PREFILL_TOKENS = 8192
CONTEXT_TOKENS = 8192
BYTES_PER_GB = 1 << 30


def main(argv: Sequence[str]) -> int:
    """The exit code; 2 for a command line that the engine can't serve."""
    arguments = parse(argv, DIALECT_VERSION, corrections=False)
    if arguments.algorithm not in (None, "STANDALONE", "NGRAM"):
        sys.stderr.write(f"OpenVINO failed: it has no {arguments.algorithm}; STANDALONE and NGRAM are served\n")
        return 2
    return serve(OpenVinoBackend(settings(arguments), facts(arguments)), arguments)


def settings(arguments: ServerArguments) -> Settings:
    """What the worker needs."""
    return Settings(
        model=arguments.model_path,
        drafter=arguments.draft_path,
        proposed_tokens=max(0, arguments.num_draft_tokens - 1),
        ngram=arguments.ngram_length if arguments.algorithm == "NGRAM" else 0,
        max_running_requests=running_requests(arguments),
        max_prefill_tokens=int(arguments.resolved.get("chunked_prefill_size") or PREFILL_TOKENS),
        capacity_tokens=capacity_tokens(arguments),
        context_length=context_tokens(arguments),
    )


def facts(arguments: ServerArguments) -> EngineFacts:
    """What is true before anything is loaded."""
    lookup = arguments.algorithm == "NGRAM"
    steps = arguments.num_steps if not lookup else arguments.num_draft_tokens - 1
    limits = {
        "max_running_requests": running_requests(arguments),
        "context_length": context_tokens(arguments),
        "disable_radix_cache": True,
        "speculative_num_steps": steps if arguments.algorithm else None,
        "speculative_eagle_topk": 1 if arguments.algorithm else None,
    }
    return EngineFacts(
        dialect_version=DIALECT_VERSION,
        simulated=False,
        model_path=arguments.model_path,
        served_model_name=arguments.served_model_name,
        resolved={**arguments.resolved, **limits},
        algorithm=arguments.algorithm,
        draft_tokens=arguments.num_draft_tokens,
        steps=steps,
        topk=1 if arguments.algorithm else 0,
        has_drafter=arguments.draft_path is not None,
        graphs=False,
        graph_word=None,
        max_running_requests=running_requests(arguments),
        context_length=context_tokens(arguments),
        capacity_tokens=capacity_tokens(arguments),
        dtype="f16",
        architecture=_architecture(Path(arguments.model_path)),
        weight_gb=_weight_gb(Path(arguments.model_path)),
        extra={"engine": "openvino-genai", "engine_version": _version()},
    )


def running_requests(arguments: ServerArguments) -> int:
    """As asked for, else the same for every variant."""
    return arguments.max_running_requests or RUNNING_REQUESTS


def context_tokens(arguments: ServerArguments) -> int:
    return arguments.context_length or CONTEXT_TOKENS


def capacity_tokens(arguments: ServerArguments) -> int:
    """Slots of the target's KV cache: `--max-total-tokens`, else enough for the running requests at a usual length."""
    return int(arguments.resolved.get("max_total_tokens") or CAPACITY_TOKENS)


def _architecture(folder: Path) -> str:
    """From a config.json beside the model, where there is one."""
    path = folder / "config.json"
    if not path.is_file():
        return "openvino_model"
    try:
        names = msgspec.json.decode(path.read_bytes()).get("architectures")
    except (OSError, msgspec.DecodeError, AttributeError):
        return "openvino_model"
    return str(names[0]) if isinstance(names, list) and names else "openvino_model"


def _weight_gb(folder: Path) -> float:
    weights = folder / "openvino_model.bin"
    return weights.stat().st_size / BYTES_PER_GB if weights.is_file() else 0.0


def _version() -> str | None:
    try:
        return importlib.metadata.version("openvino-genai")
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
