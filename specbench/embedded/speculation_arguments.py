"""What SGLang makes of its speculative arguments, version by version. Texts are those of the package sources."""

import argparse
from typing import Any, Final, NoReturn, Protocol

from msgspec import Struct
from packaging.version import Version

from specbench.dialects.sglang_version import effective_draft_tokens

ALGORITHMS: Final = {
    "EAGLE": Version("0.4.3"),
    "EAGLE3": Version("0.4.4.post4"),
    "NEXTN": Version("0.4.6"),
    "STANDALONE": Version("0.5.3"),
    "NGRAM": Version("0.5.3"),
    "DFLASH": Version("0.5.11"),
    "FROZEN_KV_MTP": Version("0.5.12"),
    "DSPARK": Version("0.5.16"),
    "UNO": Version("0.5.20"),
}
"""Each with the first version read that takes it."""
FREE_TEXT_ALGORITHM: Final = Version("0.5.12")
"""From it on the name is free text, in any case; before, one of argparse's choices."""
CAP: Final = 48
CAP_IS_LOGGED: Final = Version("0.5.4")
"""Older versions cap without a word."""
OVERLAP_BY_DEFAULT: Final = Version("0.5.11")
"""Before, EAGLE's family switches the overlap schedule off (later ones unless SGLANG_ENABLE_SPEC_V2 is set)."""
OVERLAP_FOR_ALL: Final = Version("0.5.14")
"""Before, NGRAM and DFLASH switch it off too."""
SHALLOW_AUTO_VALUES: Final = Version("0.5.8")
NGRAM_TRIE: Final = Version("0.5.10")
NGRAM_BREADTH: Final = 10
NGRAM_DRAFT_TOKENS: Final = 12
NGRAM_WINDOW_LENGTH: Final = 12
NGRAM_TRIE_DEPTH: Final = 18
BLOCK_DRAFT_TOKENS: Final = 16
LOOKUP: Final = "NGRAM"
ONE_PASS: Final = ("DFLASH", "DSPARK", "UNO")
"""They draft a whole block at once: one step, top-k 1."""


class Refuse(Protocol):
    """argparse's `error`: one sentence, exit 2."""

    def __call__(self, message: str) -> NoReturn: ...


class Drafting(Struct, frozen=True, kw_only=True):
    """Speculation as the server will run it."""

    algorithm: str
    draft_path: str | None = None
    steps: int
    topk: int
    draft_tokens: int
    ngram_length: int = 0
    changed: dict[str, Any] = {}
    """Other arguments that speculation changes, by SGLang's attribute name."""
    warnings: tuple[str, ...] = ()


def drafting(raw: argparse.Namespace, version: Version, refuse: Refuse) -> Drafting | None:
    """None without speculation."""
    if raw.speculative_algorithm is None:
        return None
    name = raw.speculative_algorithm.upper()
    if name not in ALGORITHMS or version < ALGORITHMS[name]:
        refuse(f"ValueError: Unknown speculative algorithm name: {name}")
    name = "EAGLE" if name == "NEXTN" else name
    if name in ("STANDALONE", LOOKUP) and getattr(raw, "enable_dp_attention", None):
        refuse(f"ValueError: Currently {name.lower()} speculative decoding does not support dp attention.")
    if name == LOOKUP:
        return _lookup(raw, version)
    if name in ONE_PASS:
        return _block(raw, name, refuse)
    return _chain_or_tree(raw, name, version, refuse)


def scheduling(raw: argparse.Namespace, found: Drafting, version: Version) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What speculation changes in SGLang's scheduler, by attribute name, and what it logs of it."""
    changed: dict[str, Any] = {}
    warnings: list[str] = []
    if raw.max_running_requests is None:
        changed["max_running_requests"] = CAP
        if version >= CAP_IS_LOGGED:
            warnings.append(
                f"Max running requests is reset to {CAP} for speculative decoding. "
                "You can override this by explicitly setting --max-running-requests."
            )
    alone = found.algorithm == LOOKUP or found.algorithm in ONE_PASS
    overlap_off = version < (OVERLAP_FOR_ALL if alone else OVERLAP_BY_DEFAULT)
    mixed_off = found.algorithm == LOOKUP or bool(getattr(raw, "enable_mixed_chunk", None))
    if overlap_off:
        changed["disable_overlap_schedule"] = True
    if mixed_off:
        changed["enable_mixed_chunk"] = False
    warnings += _scheduler_warnings(found.algorithm, overlap_off=overlap_off, mixed_off=mixed_off)
    return changed, tuple(warnings)


def _scheduler_warnings(algorithm: str, *, overlap_off: bool, mixed_off: bool) -> list[str]:
    if algorithm == LOOKUP:
        both = "overlap scheduler and mixed chunked prefill" if overlap_off else "mixed chunked prefill"
        return [f"The {both} are disabled because of using ngram speculative decoding."]
    family = algorithm.lower() if algorithm in ONE_PASS else "eagle"
    lost = ["Overlap scheduler"] * overlap_off + ["Mixed chunked prefill"] * mixed_off
    return [f"{one} is disabled because of using {family} speculative decoding." for one in lost]


def _lookup(raw: argparse.Namespace, version: Version) -> Drafting:
    topk = raw.speculative_ngram_max_bfs_breadth or NGRAM_BREADTH
    trie = version >= NGRAM_TRIE
    if trie:
        length = raw.speculative_ngram_max_trie_depth or NGRAM_TRIE_DEPTH
    else:
        length = raw.speculative_ngram_max_match_window_size or NGRAM_WINDOW_LENGTH
    guessed = raw.speculative_num_draft_tokens is None
    draft_tokens = raw.speculative_num_draft_tokens or (NGRAM_DRAFT_TOKENS if trie else length)
    name = "speculative_ngram_max_trie_depth" if trie else "speculative_ngram_max_match_window_size"
    warning = (
        f"speculative_num_draft_tokens is set to {draft_tokens} by default for ngram speculative decoding. "
        "You can override this by explicitly setting --speculative-num-draft-tokens."
    )
    return Drafting(
        algorithm=LOOKUP,
        topk=topk,
        draft_tokens=draft_tokens,
        steps=raw.speculative_num_steps or max(1, draft_tokens // topk),
        ngram_length=length,
        changed={"speculative_ngram_max_bfs_breadth": topk, name: length},
        warnings=(warning,) if guessed and trie else (),
    )


def _block(raw: argparse.Namespace, name: str, refuse: Refuse) -> Drafting:
    if raw.speculative_draft_model_path is None and name == "DFLASH":
        refuse("ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path.")
    stated, size = raw.speculative_num_draft_tokens, _block_size(raw, name)
    if stated is not None and size is not None and stated != size:
        refuse(
            f"ValueError: Both --speculative-num-draft-tokens and --speculative-{name.lower()}-block-size are set but they "
            f"differ: {stated} and {size}"
        )
    warnings = [
        f"{name} only supports {word} == 1; overriding {word}={value} to 1."
        for word in ("speculative_num_steps", "speculative_eagle_topk")
        if (value := getattr(raw, word)) not in (None, 1)
    ]
    if stated is None and size is None:
        warnings.append(f"speculative_num_draft_tokens is not set; defaulting to {BLOCK_DRAFT_TOKENS} for {name}.")
    return Drafting(
        algorithm=name,
        draft_path=raw.speculative_draft_model_path,
        steps=1,
        topk=1,
        draft_tokens=stated or size or BLOCK_DRAFT_TOKENS,
        warnings=tuple(warnings),
    )


def _block_size(raw: argparse.Namespace, name: str) -> int | None:
    size: int | None = getattr(raw, f"speculative_{name.lower()}_block_size", None)
    return size


def _chain_or_tree(raw: argparse.Namespace, name: str, version: Version, refuse: Refuse) -> Drafting:
    steps, topk, stated = raw.speculative_num_steps, raw.speculative_eagle_topk, raw.speculative_num_draft_tokens
    warnings: tuple[str, ...] = ()
    if steps is None:
        if topk is not None or stated is not None:
            refuse(
                "AssertionError: --speculative-eagle-topk and --speculative-num-draft-tokens need --speculative-num-steps; "
                "state all three or none"
            )
        steps, topk, stated = _auto_values(name, version)
    draft_tokens = effective_draft_tokens(stated, steps, topk, str(version))
    if topk is None or draft_tokens is None:
        refuse(
            "TypeError: --speculative-num-steps needs --speculative-eagle-topk and --speculative-num-draft-tokens; "
            "state all three or none"
        )
    if draft_tokens != stated:
        warnings = (
            "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
        )
    return Drafting(
        algorithm=name,
        draft_path=raw.speculative_draft_model_path,
        steps=steps,
        topk=topk,
        draft_tokens=draft_tokens,
        warnings=warnings,
    )


def _auto_values(name: str, version: Version) -> tuple[int, int, int]:
    """Steps, top-k and draft tokens for an architecture that SGLang does not name."""
    return (3, 1, 4) if name == "STANDALONE" or version >= SHALLOW_AUTO_VALUES else (5, 4, 8)
