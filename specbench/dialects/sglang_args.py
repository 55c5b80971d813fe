"""What an SGLang command line says of speculation and ranks."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from specbench.dialects.sglang_version import effective_draft_tokens


class LaunchFacts(Struct, frozen=True, kw_only=True):
    """None where the command line is silent."""

    algorithm: str | None = None
    draft_path: str | None = None
    draft_tokens: int | None = None
    """As the server will use it: with top-k 1 always steps + 1."""
    steps: int | None = None
    topk: int | None = None
    dp_rank_count: int | None = None


def launch_facts(argv: Sequence[str] | str, version: str | None = None) -> LaunchFacts:
    """Reads flags as argparse does: `--flag value` or `--flag=value`, the last one wins."""
    words = shlex.split(argv) if isinstance(argv, str) else list(argv)
    return _facts(flag_values(words), version)


def argument_facts(arguments: Mapping[str, Any], version: str | None = None) -> LaunchFacts:
    """The same from `server_args=ServerArgs(…)` or `/server_info`."""
    return _facts({name.replace("_", "-"): str(value) for name, value in arguments.items()}, version)


def flag_values(words: Sequence[str]) -> dict[str, str]:
    """`{"tp-size": "8"}`; a flag without a value has an empty one."""
    values: dict[str, str] = {}
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        following = words[index + 1] if index + 1 < len(words) else ""
        values[name] = value if equals else ("" if following.startswith("--") else following)
    return values


def _facts(values: Mapping[str, str], version: str | None) -> LaunchFacts:
    steps, topk = _number(values, "speculative-num-steps"), _number(values, "speculative-eagle-topk")
    draft_tokens = _number(values, "speculative-num-draft-tokens", "speculative-dflash-block-size")
    algorithm = values.get("speculative-algorithm") or None
    if algorithm not in ("NGRAM", "DFLASH"):  # they have no draft steps that could force the count
        draft_tokens = effective_draft_tokens(draft_tokens, steps, topk, version)
    return LaunchFacts(
        algorithm=algorithm,
        draft_path=values.get("speculative-draft-model-path") or values.get("speculative-draft-model") or None,
        draft_tokens=draft_tokens,
        steps=steps,
        topk=topk,
        dp_rank_count=_number(values, "dp-size", "data-parallel-size", "dp", "attn-dp-size"),
    )


def _number(values: Mapping[str, str], *names: str) -> int | None:
    return next((int(values[name]) for name in names if values.get(name, "").isdigit()), None)
