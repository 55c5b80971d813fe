"""What changed between SGLang versions: the printed accept rate, flags, endpoints, keys. Read from the package sources."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from specbench.dialects import Convention

RATE_FIRST_PRINTED = Version("0.5.4")
LAST_OVER_STEPS = Version("0.5.5")
FIRST_STRICT_RATE = Version("0.5.11")
TOPK_1_FORCES_DRAFT_TOKENS = Version("0.4.6")
GRAPH_BACKEND_FLAGS = Version("0.5.19")
"""`--cuda-graph-backend-{decode,prefill}`. `--disable-cuda-graph` is still taken by 0.5.23, with a warning."""
GRAPH_MAX_BS_PER_PHASE = Version("0.5.20")
"""`--cuda-graph-max-bs` is gone; `--cuda-graph-max-bs-decode` takes its place (both are known from 0.5.14)."""
NCCL_PORT = Version("0.4.9")
"""First wheel read with `--nccl-port`."""
NGRAM_TRIE = Version("0.5.10")
"""`--speculative-ngram-max-trie-depth` in place of `-max-match-window-size`."""
CONTINUOUS_USAGE = Version("0.5.5")
"""First source read whose chat stream honours `continuous_usage_stats`; 0.5.4 knows only `include_usage`."""
SPEC_DETAILS = Version("0.5.19")
NEW_INFO_NAMES = Version("0.5.6")

RATE_ROUNDING = 0.005
"""Both numbers are printed with two decimals."""
LARGEST_DRAFT_TOKENS = 128


class RateMeaning(NamedTuple):
    """What printed accept rates mean, and the draft-token count that they imply."""

    convention: Convention | None
    draft_tokens: int | None


class MetaInfoKeys(NamedTuple):
    """Per-request keys of `meta_info`; None where a version has none."""

    verify_count: str
    correct: str | None
    proposed: str | None
    histogram: str | None


META_INFO_KEYS: tuple[tuple[Version, MetaInfoKeys], ...] = (
    (
        Version("0.5.12"),
        MetaInfoKeys(
            "spec_verify_ct", "spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram"
        ),
    ),
    (
        Version("0.5.11"),
        MetaInfoKeys("spec_verify_ct", "spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"),
    ),
    (
        Version("0.5.9"),
        MetaInfoKeys("spec_verify_ct", "spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"),
    ),
    (Version("0.5.6"), MetaInfoKeys("spec_verify_ct", "spec_accept_token_num", "spec_draft_token_num", None)),
    (Version("0"), MetaInfoKeys("spec_verify_ct", None, None, None)),
)


def parse(text: str | None) -> Version | None:
    """`0.5.10.post1`, `v0.5.4`, `0.5.9+cu129`; None for anything that is no version."""
    found = re.search(r"\d+\.\d+(?:\.\d+)?(?:(?:\.post|\.dev|rc)\d+)?", text or "")
    if found is None:
        return None
    try:
        return Version(found.group())
    except InvalidVersion:
        return None


def meta_info_keys(version: str | None) -> MetaInfoKeys:
    """The newest names when the version is not known."""
    parsed = parse(version)
    return next(keys for since, keys in META_INFO_KEYS if parsed is None or parsed >= since)


def convention_of(version: str | None) -> Convention | None:
    """By version alone; None where no rate is printed or the version is not known."""
    parsed = parse(version)
    if parsed is None or parsed < RATE_FIRST_PRINTED:
        return None
    if parsed >= FIRST_STRICT_RATE:
        return "drafts_over_draft_tokens_minus_1"
    return "tokens_over_steps_plus_1" if parsed <= LAST_OVER_STEPS else "tokens_over_draft_tokens"


def rate_meaning(
    pairs: Iterable[tuple[float | None, float | None]],
    version: str | None = None,
    draft_tokens: int | None = None,
    steps: int | None = None,
) -> RateMeaning:
    """What the printed (accept length, accept rate) pairs mean: the version's word where the numbers agree with it,
    otherwise what the numbers say. Builds between releases print by the next release's rule, hence the second look."""
    printed = sorted({(length, rate) for length, rate in pairs if length is not None and rate is not None})
    if not printed:
        return RateMeaning(None, draft_tokens)
    order = _order(version)
    for convention in order:
        denominator = _known_denominator(convention, draft_tokens, steps)
        if denominator is not None and _fits(printed, convention, denominator):
            return RateMeaning(convention, draft_tokens or _draft_tokens(convention, denominator))
    for convention in order:
        fitting = [one for one in range(1, LARGEST_DRAFT_TOKENS) if _fits(printed, convention, one)]
        if fitting:
            implied = _draft_tokens(convention, fitting[0]) if len(fitting) == 1 else None
            return RateMeaning(convention, implied or draft_tokens)
    return RateMeaning(convention_of(version), draft_tokens)


def effective_draft_tokens(
    draft_tokens: int | None, steps: int | None, topk: int | None, version: str | None = None
) -> int | None:
    """What the server will really verify a step: top-k 1 forces steps + 1 (a warning in its log, from 0.4.6)."""
    parsed = parse(version)
    forced = parsed is None or parsed >= TOPK_1_FORCES_DRAFT_TOKENS
    if topk == 1 and steps is not None and (forced or draft_tokens is None):
        return steps + 1
    return draft_tokens


def graphs_off_flags(version: str | None) -> tuple[str, ...]:
    """Flags that switch CUDA graphs off. The old one when the version is not known: every version read takes it."""
    parsed = parse(version)
    if parsed is not None and parsed >= GRAPH_BACKEND_FLAGS:
        return ("--cuda-graph-backend-decode=disabled", "--cuda-graph-backend-prefill=disabled")
    return ("--disable-cuda-graph",)


def takes_nccl_port(version: str | None) -> bool:
    """Older ones choose a port themselves."""
    parsed = parse(version)
    return parsed is None or parsed >= NCCL_PORT


def graph_max_bs_flag(version: str | None) -> str:
    """The flag for the largest batch that a decode graph is captured for."""
    parsed = parse(version)
    per_phase = parsed is not None and parsed >= GRAPH_MAX_BS_PER_PHASE
    return "--cuda-graph-max-bs-decode" if per_phase else "--cuda-graph-max-bs"


def ngram_length_flag(version: str | None) -> str:
    """The flag for the longest n-gram matched; the newest spelling when the version is not known."""
    parsed = parse(version)
    old = parsed is not None and parsed < NGRAM_TRIE
    return "--speculative-ngram-max-match-window-size" if old else "--speculative-ngram-max-trie-depth"


def server_info_paths(version: str | None) -> tuple[str, ...]:
    """Where the server tells its resolved arguments, the preferred path first."""
    parsed = parse(version)
    if parsed is not None and parsed < NEW_INFO_NAMES:
        return ("/get_server_info",)
    return ("/server_info", "/get_server_info")


def _order(version: str | None) -> Sequence[Convention]:
    """Conventions to try, the likeliest first."""
    parsed = parse(version)
    likely = convention_of(version)
    if likely is None and parsed is not None:  # older than the first release that prints a rate
        likely = "tokens_over_steps_plus_1"
    newest_first: tuple[Convention, ...] = (
        "drafts_over_draft_tokens_minus_1",
        "tokens_over_draft_tokens",
        "tokens_over_steps_plus_1",
    )
    return sorted(newest_first, key=lambda one: one != likely)


def _known_denominator(convention: Convention, draft_tokens: int | None, steps: int | None) -> int | None:
    if convention == "tokens_over_steps_plus_1":
        return None if steps is None else steps + 1
    if draft_tokens is None:
        return None
    return draft_tokens if convention == "tokens_over_draft_tokens" else draft_tokens - 1


def _draft_tokens(convention: Convention, denominator: int) -> int:
    return denominator + 1 if convention == "drafts_over_draft_tokens_minus_1" else denominator


def _fits(printed: Sequence[tuple[float, float]], convention: Convention, denominator: int) -> bool:
    if denominator < 1:
        return False
    bonus = 1.0 if convention == "drafts_over_draft_tokens_minus_1" else 0.0
    allowed = RATE_ROUNDING * (1 + 1 / denominator) + 1e-9
    return all(abs((length - bonus) / denominator - rate) <= allowed for length, rate in printed)
