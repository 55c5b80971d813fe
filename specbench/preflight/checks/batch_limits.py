"""CUDA graphs or running requests end below the planned concurrency."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts, of_workload
from specbench.preflight.checks import Check

SPECULATING_CAP: Final = 48
OFF: Final = ("disable-cuda-graph", "disable-decode-cuda-graph")


def check(facts: Facts) -> Iterable[Finding]:
    """At most one of each."""
    planned = facts.load.max_concurrency
    if facts.engine != "sglang" or planned is None:
        return
    ranks = facts.words.number("dp-size", "attn-dp-size") or 1
    yield from _graphs(facts, planned, -(-planned // ranks))
    yield from _running(facts, planned)


def _graphs(facts: Facts, planned: int, each: int) -> Iterable[Finding]:
    words = facts.words
    off = words.has(*OFF) or words.flags.get("cuda-graph-backend-decode") == "disabled"
    largest = _largest_graph(facts)
    if off or largest is None or largest >= min(each, words.number("max-running-requests") or each):
        return
    yield facts.say(
        "graph_max_bs_below_concurrency",
        "warning",
        f"CUDA graphs are captured up to batch {largest}, and "
        f"{planned} streams{of_workload(facts.load.busiest)} are planned: "
        "larger batches run "
        "without graphs, so one table mixes two speeds.",
        f"largest graph {largest}, concurrency {planned}",
        f"Capture graphs up to {each} (--cuda-graph-max-bs, from 0.5.20 on --cuda-graph-max-bs-decode).",
    )


def _largest_graph(facts: Facts) -> int | None:
    stated = facts.words.number("cuda-graph-max-bs-decode", "cuda-graph-max-bs")
    sizes = [size for flag in ("--cuda-graph-bs", "--cuda-graph-bs-decode") for size in _after(facts.argv, flag)]
    return max(sizes) if sizes else stated


def _after(argv: tuple[str, ...], flag: str) -> Iterable[int]:
    if flag not in argv:
        return
    for word in argv[argv.index(flag) + 1 :]:
        if not word.isdigit():
            return
        yield int(word)


def _running(facts: Facts, planned: int) -> Iterable[Finding]:
    stated = facts.words.number("max-running-requests")
    limit = stated or (SPECULATING_CAP if facts.algorithm else None)
    if limit is None or limit >= planned:
        return
    origin = "as stated" if stated else "SGLang's own limit with speculation; the baseline has none"
    yield facts.say(
        "max_running_below_concurrency",
        "warning",
        f"The server runs at most {limit} requests at once, and {planned} streams{of_workload(facts.load.busiest)} "
        "are planned: the rest queue.",
        f"max running requests {limit} ({origin}), concurrency {planned}",
        f"Give --max-running-requests {planned} to every variant, the baseline too.",
    )


CHECK: Final[Check] = check
