"""SGLang's own command line: parsed as it parses it, resolved as it resolves it, with the warnings that it would log."""

import argparse
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from packaging.version import Version

from specbench.embedded.flags import SWITCHES, VALUES, known
from specbench.units import Ratio

ALGORITHMS: Final = {
    "EAGLE": Version("0.4.3"),
    "EAGLE3": Version("0.4.4.post4"),
    "NEXTN": Version("0.4.6"),
    "STANDALONE": Version("0.5.3"),
    "NGRAM": Version("0.5.3"),
    "DFLASH": Version("0.5.12"),
    "DSPARK": Version("0.5.16"),
    "UNO": Version("0.5.20"),
}
"""Each with the first version that takes it."""
FREE_TEXT_ALGORITHM: Final = Version("0.5.12")
"""From it on the name is free text, in any case; before, one of argparse's choices."""
SPECULATIVE_CAP: Final = 48
TOPK_1_FORCES_DRAFT_TOKENS: Final = Version("0.4.6.post5")
NEW_AUTO_VALUES: Final = Version("0.5.12")
NGRAM_BREADTH: Final = 10
NGRAM_DRAFT_TOKENS: Final = 12
NGRAM_LENGTH: Final = 18


class ServerArguments(Struct, frozen=True, kw_only=True):
    """A command line as the server uses it, after SGLang's own corrections."""

    model_path: str
    served_model_name: str
    host: str
    port: int
    tp_size: int
    dp_size: int
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
    api_key: str | None = None
    context_length: int | None = None
    disable_radix_cache: bool = False
    warnings: tuple[str, ...] = ()
    """Lines that SGLang logs about what it changed."""
    resolved: dict[str, Any]
    """All of it under SGLang's attribute names, for `/server_info`; the API key hidden."""


def parse(argv: Sequence[str], version: str, *, corrections: bool = True) -> ServerArguments:
    """Exits with 2 on a flag that this version does not know, as SGLang does.

    `corrections` False leaves out what only SGLang's scheduler changes: the cap on running requests.
    """
    parsed = Version(version)
    parser = _parser(parsed)
    raw = parser.parse_args(list(argv))
    warnings: list[str] = []
    speculation = _speculation(raw, parsed, parser, warnings)
    limit = raw.max_running_requests
    if limit is None and corrections and speculation:
        limit = SPECULATIVE_CAP
        warnings.append(
            f"Max running requests is reset to {SPECULATIVE_CAP} for speculative decoding. "
            "You can override this by explicitly setting --max-running-requests."
        )
    known_values: dict[str, Any] = {
        "model_path": raw.model_path,
        "served_model_name": raw.served_model_name or raw.model_path,
        "host": raw.host,
        "port": raw.port,
        "tp_size": raw.tp_size,
        "dp_size": raw.dp_size,
        "cuda_graph": not _graphs_off(raw),
        "cuda_graph_max_bs": _graph_limit(raw),
        "max_running_requests": limit,
        "mem_fraction_static_ratio": raw.mem_fraction_static,
        "decode_log_interval": raw.decode_log_interval,
        "log_level": raw.log_level,
        "enable_metrics": raw.enable_metrics,
        "api_key": raw.api_key,
        "context_length": raw.context_length,
        "disable_radix_cache": raw.disable_radix_cache,
    } | speculation
    return ServerArguments(warnings=tuple(warnings), resolved=_resolved(raw, known_values), **known_values)


def _parser(version: Version) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch_server", allow_abbrev=False)

    def add(*flags: str, **settings: Any) -> None:
        kept = [flag for flag in flags if known(flag, version)]
        if kept:
            parser.add_argument(*kept, **settings)
        elif "dest" in settings:
            parser.set_defaults(**{settings["dest"]: settings.get("default")})

    add("--model-path", "--model", dest="model_path", required=True)
    add("--served-model-name", dest="served_model_name")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=30000)
    add("--tp-size", "--tp", "--tensor-parallel-size", dest="tp_size", type=int, default=1)
    add("--dp-size", "--dp", "--data-parallel-size", dest="dp_size", type=int, default=1)
    add("--max-running-requests", type=int, dest="max_running_requests")
    add("--mem-fraction-static", type=float, dest="mem_fraction_static")
    add("--decode-log-interval", type=_positive, default=40)
    add("--log-level", default="info")
    add("--enable-metrics", action="store_true")
    add("--enable-cache-report", action="store_true")
    add("--disable-radix-cache", action="store_true")
    add("--api-key", dest="api_key")
    add("--context-length", type=int, dest="context_length")
    add("--chunked-prefill-size", type=int, default=8192)
    _add_graph_flags(add)
    _add_speculation_flags(add, version)
    for flag in SWITCHES:
        add(flag, action="store_true", default=None, dest=flag[2:].replace("-", "_"))
    for flag in VALUES:
        add(flag, dest=flag[2:].replace("-", "_"))
    return parser


def _add_graph_flags(add: Any) -> None:
    add("--disable-cuda-graph", action="store_true")
    add("--disable-decode-cuda-graph", action="store_true", dest="disable_decode_cuda_graph", default=False)
    add("--cuda-graph-backend-decode", dest="cuda_graph_backend_decode", default=None)
    add("--cuda-graph-max-bs", type=int, dest="cuda_graph_max_bs", default=None)
    add("--cuda-graph-bs", type=int, nargs="+", dest="cuda_graph_bs", default=None)
    add("--cuda-graph-max-bs-decode", type=int, dest="cuda_graph_max_bs_decode", default=None)
    add("--cuda-graph-bs-decode", type=int, nargs="+", dest="cuda_graph_bs_decode", default=None)


def _add_speculation_flags(add: Any, version: Version) -> None:
    choices = None if version >= FREE_TEXT_ALGORITHM else [name for name, since in ALGORITHMS.items() if version >= since]
    add("--speculative-algorithm", "--speculative-algo", dest="algorithm", choices=choices)
    add("--speculative-draft-model-path", "--speculative-draft-model", dest="draft_path")
    add("--speculative-num-steps", type=int, dest="num_steps")
    add("--speculative-eagle-topk", type=int, dest="topk")
    add("--speculative-num-draft-tokens", type=int, dest="num_draft_tokens")
    add(
        "--speculative-ngram-max-trie-depth",
        "--speculative-ngram-max-match-window-size",
        type=int,
        dest="ngram_length",
        default=NGRAM_LENGTH,
    )


def _speculation(
    raw: argparse.Namespace, version: Version, parser: argparse.ArgumentParser, warnings: list[str]
) -> dict[str, Any]:
    """Empty without speculation."""
    if raw.algorithm is None:
        return {}
    name = raw.algorithm.upper()
    if name not in ALGORITHMS:
        parser.error(f"ValueError: Unknown speculative algorithm name: {raw.algorithm}")
    name = "EAGLE" if name == "NEXTN" else name
    if name == "NGRAM":
        draft_tokens = raw.num_draft_tokens or NGRAM_DRAFT_TOKENS
        return {
            "algorithm": name,
            "topk": NGRAM_BREADTH,
            "num_draft_tokens": draft_tokens,
            "num_steps": max(1, draft_tokens // NGRAM_BREADTH),
            "ngram_length": raw.ngram_length,
        }
    steps, topk, draft_tokens = _drafting(raw, version, parser, warnings)
    return {
        "algorithm": name,
        "draft_path": raw.draft_path,
        "num_steps": steps,
        "topk": topk,
        "num_draft_tokens": draft_tokens,
    }


def _drafting(
    raw: argparse.Namespace, version: Version, parser: argparse.ArgumentParser, warnings: list[str]
) -> tuple[int, int, int]:
    """Steps, top-k and draft tokens: all three given, or all three guessed by the version."""
    if raw.num_steps is None:
        if raw.topk is not None or raw.num_draft_tokens is not None:
            parser.error(
                "AssertionError: --speculative-eagle-topk and --speculative-num-draft-tokens need --speculative-num-steps"
            )
        return (3, 1, 4) if version >= NEW_AUTO_VALUES else (5, 4, 8)
    topk = raw.topk or 1
    draft_tokens = raw.num_draft_tokens or raw.num_steps + 1
    if topk == 1 and draft_tokens != raw.num_steps + 1 and version >= TOPK_1_FORCES_DRAFT_TOKENS:
        warnings.append(
            "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1"
        )
        draft_tokens = raw.num_steps + 1
    return raw.num_steps, topk, draft_tokens


def _graphs_off(raw: argparse.Namespace) -> bool:
    return bool(raw.disable_cuda_graph or raw.disable_decode_cuda_graph or raw.cuda_graph_backend_decode == "disabled")


def _graph_limit(raw: argparse.Namespace) -> int | None:
    """The largest batch that runs in a graph; None: whatever fits."""
    sizes = raw.cuda_graph_bs_decode or raw.cuda_graph_bs
    limit: int | None = raw.cuda_graph_max_bs_decode or raw.cuda_graph_max_bs or (max(sizes) if sizes else None)
    return limit


def _resolved(raw: argparse.Namespace, values: dict[str, Any]) -> dict[str, Any]:
    named = {name: value for name, value in vars(raw).items() if value is not None}
    for name in ("algorithm", "num_steps", "topk", "num_draft_tokens", "draft_path", "ngram_length"):
        named.pop(name, None)
    named |= {
        "max_running_requests": values["max_running_requests"],
        "served_model_name": values["served_model_name"],
        "disable_cuda_graph": not values["cuda_graph"],
        "speculative_algorithm": values.get("algorithm"),
        "speculative_draft_model_path": values.get("draft_path"),
        "speculative_num_steps": values.get("num_steps"),
        "speculative_eagle_topk": values.get("topk"),
        "speculative_num_draft_tokens": values.get("num_draft_tokens"),
    }
    if "api_key" in named:
        named["api_key"] = "(hidden)"
    return named


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value
