"""More than one branch a step, on a backend that can't verify a tree."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check

TREE_ON_PAGES: Final = ("flashinfer", "fa3", "triton")
CHAIN_ONLY: Final = ("trtllm_mha", "trtllm_mla", "flashmla")
BACKEND_FLAGS: Final = ("attention-backend", "decode-attention-backend", "speculative-draft-attention-backend")
OVERLAP_VARIABLE: Final = "SGLANG_ENABLE_SPEC_V2"
CODE: Final = "topk_unsupported_by_backend"


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    if facts.engine != "sglang" or facts.algorithm is None:
        return
    backends = tuple(dict.fromkeys(facts.words.flags[one] for one in BACKEND_FLAGS if facts.words.flags.get(one)))
    topk = _branches(facts)
    if topk is not None and topk > 1:
        yield from _first(_tree(facts, topk, backends))


def _branches(facts: Facts) -> int | None:
    """Prompt lookup's breadth is 10 unless stated."""
    if facts.algorithm == "NGRAM":
        return facts.words.number("speculative-ngram-max-bfs-breadth") or 10
    return facts.words.topk


def _first(found: Iterable[Finding]) -> Iterable[Finding]:
    yield from list(found)[:1]


def _tree(facts: Facts, topk: int, backends: tuple[str, ...]) -> Iterable[Finding]:
    page = facts.words.number("page-size") or 1
    named = ", ".join(backends)
    for backend in backends:
        if backend in CHAIN_ONLY:
            message = f"The attention backend {backend} verifies chains only: top-k must be 1, and {topk} is asked for."
            yield facts.say(CODE, "error", message, f"top-k {topk}, {backend}", "Use top-k 1, or flashinfer, fa3 or triton.")
    if page > 1:
        yield from _pages(facts, topk, page, named)
    if facts.env.get(OVERLAP_VARIABLE, "").lower() in ("1", "true") and facts.before("0.5.12"):
        message = f"{OVERLAP_VARIABLE} overlaps chains only: top-k must be 1, and {topk} is asked for."
        yield facts.say(CODE, "error", message, f"top-k {topk}", f"Use top-k 1 or leave {OVERLAP_VARIABLE} out.")


def _pages(facts: Facts, topk: int, page: int, named: str) -> Iterable[Finding]:
    able = ("flashinfer",) if facts.algorithm == "NGRAM" else TREE_ON_PAGES
    evidence = f"top-k {topk}, page size {page}, backend {named or 'left to the server'}"
    remedy = f"Use top-k 1, or --page-size 1, or one of the backends {', '.join(able)}."
    if named and not all(one in able for one in named.split(", ")):
        message = (
            f"With pages of {page} tokens a tree of top-k {topk} is verified on {', '.join(able)} only, not on {named}: "
            "SGLang refuses to start."
        )
        yield facts.say(CODE, "error", message, evidence, remedy)
    elif not named:
        message = f"With pages of {page} tokens a tree of top-k {topk} needs {' or '.join(able)}; no backend is stated."
        yield facts.say(CODE, "warning", message, evidence, remedy)


CHECK: Final[Check] = check
