"""SGLang's own command line: parsed as it parses it, resolved as it resolves it, with the warnings that it would log."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from packaging.version import Version

from specbench.embedded.flags import Kind, options
from specbench.embedded.speculation_arguments import ALGORITHMS, FREE_TEXT_ALGORITHM, Drafting, drafting, scheduling
from specbench.units import Ratio, Second

PROGRAM: Final = "launch_server.py"
DEFAULTS: Final[Mapping[str, Any]] = {
    "host": "127.0.0.1",
    "port": 30000,
    "tp_size": 1,
    "dp_size": 1,
    "decode_log_interval": 40,
    "log_level": "info",
    "chunked_prefill_size": 8192,
    "watchdog_timeout": 300.0,
    "enable_metrics": False,
    "enable_cache_report": False,
    "disable_radix_cache": False,
    "disable_overlap_schedule": False,
    "skip_server_warmup": False,
}
"""Attributes that are always told, also where nothing was stated."""
AT_LEAST_1: Final = frozenset(
    {
        "tp_size",
        "dp_size",
        "decode_log_interval",
        "max_running_requests",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
        "speculative_ngram_max_bfs_breadth",
    }
)
GRAPH_BACKENDS: Final = ("full", "breakable", "tc_piecewise", "disabled")
OFF: Final = "disabled"
DEPRECATED: Final = {
    "disable_cuda_graph": (Version("0.5.14"), "--cuda-graph-backend-{decode,prefill}=disabled"),
    "cuda_graph_max_bs": (Version("0.5.14"), "--cuda-graph-max-bs-decode"),
    "cuda_graph_bs": (Version("0.5.14"), "--cuda-graph-bs-decode"),
    "enable_dp_attention": (Version("0.5.23"), "--attn-dp-size <dp-size>"),
}
"""First version read that warns of it, and what to write instead."""
WITH_EFFECT: Final = frozenset(
    {
        "model_path",
        "served_model_name",
        "nccl_port",
        "max_running_requests",
        "mem_fraction_static",
        "api_key",
        "context_length",
        "disable_cuda_graph",
        "disable_decode_cuda_graph",
        "speculative_algorithm",
        "speculative_draft_model_path",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
        "speculative_ngram_max_bfs_breadth",
        "speculative_ngram_max_trie_depth",
        "speculative_ngram_max_match_window_size",
    }
)
"""Attributes that come out in a field of their own, beside those of DEFAULTS."""


class ServerArguments(Struct, frozen=True, kw_only=True):
    """A command line as the server uses it, after SGLang's own corrections."""

    model_path: str
    served_model_name: str
    host: str
    port: int
    tp_size: int
    dp_size: int
    nccl_port: int | None = None
    algorithm: str | None = None
    """Upper case; NEXTN is already EAGLE."""
    draft_path: str | None = None
    num_steps: int = 0
    topk: int = 0
    num_draft_tokens: int = 0
    """With the bonus slot; 0 without speculation."""
    ngram_length: int = 0
    cuda_graph: bool = True
    cuda_graph_max_bs: int | None = None
    max_running_requests: int | None
    """None: not stated, and left to the engine."""
    mem_fraction_static_ratio: Ratio | None = None
    decode_log_interval: int = 40
    log_level: str = "info"
    enable_metrics: bool = False
    enable_cache_report: bool = False
    skip_server_warmup: bool = False
    api_key: str | None = None
    context_length: int | None = None
    chunked_prefill_size: int = 8192
    disable_radix_cache: bool = False
    watchdog_timeout_s: Second = 300.0
    other: dict[str, Any] = {}
    """What else was stated, by SGLang's attribute name: taken, told in `/server_info`, without effect here."""
    warnings: tuple[str, ...] = ()
    """Lines that SGLang logs about what it changed."""
    resolved: dict[str, Any]
    """All of it under SGLang's attribute names, for `/server_info`; the API key hidden."""


def parse(argv: Sequence[str], version: str, *, corrections: bool = True) -> ServerArguments:
    """Exits with 2 on a flag that this version does not know, as SGLang does.

    `corrections` False leaves out what speculation changes in SGLang's scheduler, such as the cap on running requests.
    """
    parsed = Version(version)
    parser = _parser(parsed)
    raw = parser.parse_args(list(argv))
    found = drafting(raw, parsed, parser.error)
    changed, scheduler_warnings = scheduling(raw, found, parsed) if found and corrections else ({}, ())
    warnings = (*_deprecations(raw, parsed), *scheduler_warnings, *(found.warnings if found else ()))
    values = vars(raw) | changed | (found.changed if found else {})
    return _arguments(values, found, warnings)


def _arguments(values: dict[str, Any], found: Drafting | None, warnings: tuple[str, ...]) -> ServerArguments:
    return ServerArguments(
        model_path=values["model_path"],
        served_model_name=values["served_model_name"] or values["model_path"],
        host=values["host"],
        port=values["port"],
        tp_size=values["tp_size"],
        dp_size=values["dp_size"],
        nccl_port=values.get("nccl_port"),
        algorithm=found.algorithm if found else None,
        draft_path=found.draft_path if found else None,
        num_steps=found.steps if found else 0,
        topk=found.topk if found else 0,
        num_draft_tokens=found.draft_tokens if found else 0,
        ngram_length=found.ngram_length if found else 0,
        cuda_graph=not _graphs_off(values),
        cuda_graph_max_bs=_graph_limit(values),
        max_running_requests=values["max_running_requests"],
        mem_fraction_static_ratio=values["mem_fraction_static"],
        decode_log_interval=values["decode_log_interval"],
        log_level=values["log_level"],
        enable_metrics=values["enable_metrics"],
        enable_cache_report=values["enable_cache_report"],
        skip_server_warmup=values["skip_server_warmup"],
        api_key=values["api_key"],
        context_length=values["context_length"],
        chunked_prefill_size=values["chunked_prefill_size"],
        disable_radix_cache=values["disable_radix_cache"],
        watchdog_timeout_s=values["watchdog_timeout"],
        other=_other(values),
        warnings=warnings,
        resolved=_resolved(values, found),
    )


def _parser(version: Version) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False)
    taken = options(version)
    for attribute, option in taken.items():
        parser.add_argument(*option.names, dest=attribute, **_settings(attribute, option.kind, version))
    parser.set_defaults(**{name: value for name, value in DEFAULTS.items() if name not in taken})
    return parser


def _settings(attribute: str, kind: Kind, version: Version) -> dict[str, Any]:
    """What argparse is to know of one option."""
    default = DEFAULTS.get(attribute)
    if kind == "switch":
        return {"action": "store_true", "default": default}
    settings: dict[str, Any] = {"default": default, "type": _converter(attribute, kind)}
    if attribute == "model_path":
        settings["required"] = True
    elif attribute == "speculative_algorithm" and version < FREE_TEXT_ALGORITHM:
        settings["choices"] = [name for name, since in ALGORITHMS.items() if version >= since]
    elif attribute in ("cuda_graph_backend_decode", "cuda_graph_backend_prefill"):
        settings["choices"] = GRAPH_BACKENDS
    if kind in ("texts", "ints", "floats"):
        settings["nargs"] = "+"
    elif kind == "maybe":
        settings |= {"nargs": "?", "const": ""}
    return settings


def _converter(attribute: str, kind: Kind) -> Callable[[str], Any]:
    if attribute == "cuda_graph_config":
        return _graph_config
    if attribute in AT_LEAST_1:
        return _at_least_1
    return {"int": int, "ints": int, "float": float, "floats": float}.get(kind, str)


def _at_least_1(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _graph_config(text: str) -> dict[str, dict[str, Any]]:
    try:
        return msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except msgspec.DecodeError as error:
        raise argparse.ArgumentTypeError(f"--cuda-graph-config must be a JSON object of phases: {error}") from None


def _graphs_off(values: Mapping[str, Any]) -> bool:
    """Whether decode runs without graphs. The JSON goes before the flags, as in SGLang."""
    backend = _decode_graph(values).get("backend") or values.get("cuda_graph_backend_decode")
    if backend:
        return bool(backend == OFF)
    return bool(values.get("disable_cuda_graph") or values.get("disable_decode_cuda_graph"))


def _graph_limit(values: Mapping[str, Any]) -> int | None:
    """The largest batch that runs in a graph; None: whatever fits."""
    stated = _decode_graph(values).get("max_bs")
    sizes = values.get("cuda_graph_bs_decode") or values.get("cuda_graph_bs")
    limit: int | None = stated or values.get("cuda_graph_max_bs_decode") or values.get("cuda_graph_max_bs")
    return limit or (max(sizes) if sizes else None)


def _decode_graph(values: Mapping[str, Any]) -> Mapping[str, Any]:
    phase: Mapping[str, Any] = (values.get("cuda_graph_config") or {}).get("decode") or {}
    return phase


def _deprecations(raw: argparse.Namespace, version: Version) -> list[str]:
    return [
        f"'--{name.replace('_', '-')}' is deprecated and will be removed in a future release. Use '{instead}' instead."
        for name, (since, instead) in DEPRECATED.items()
        if getattr(raw, name, None) and version >= since
    ]


def _other(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if value is not None and name not in DEFAULTS and name not in WITH_EFFECT and not name.startswith("cuda_graph_")
    }


def _resolved(values: Mapping[str, Any], found: Drafting | None) -> dict[str, Any]:
    named = {name: value for name, value in values.items() if value is not None}
    named |= {
        "max_running_requests": values["max_running_requests"],
        "served_model_name": values["served_model_name"] or values["model_path"],
        "disable_cuda_graph": _graphs_off(values),
        "speculative_algorithm": found.algorithm if found else None,
        "speculative_draft_model_path": found.draft_path if found else None,
        "speculative_num_steps": found.steps if found else None,
        "speculative_eagle_topk": found.topk if found else None,
        "speculative_num_draft_tokens": found.draft_tokens if found else None,
    }
    if "api_key" in named:
        named["api_key"] = "(hidden)"
    return named
