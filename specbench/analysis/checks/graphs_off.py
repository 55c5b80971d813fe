"""Decode steps ran without CUDA graphs although they were wanted, or only some of them did."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, Summary
from specbench.analysis.checks import Check, Evidence
from specbench.units import counted, span

CODES: Final = ("graphs_off", "mixed_graph_regimes")


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a variant and kind."""
    for name, codes in evidence.codes.items():
        rows = [row for row in evidence.rows(name) if row.graph_ratio is not None]
        for code in CODES:
            if code in codes:
                yield _finding(code, name, rows)


def _finding(code: str, name: str, rows: list[Summary]) -> Finding:
    ratios = sorted(row.graph_ratio for row in rows if row.graph_ratio is not None)
    off = code == "graphs_off"
    return Finding(
        code=code,
        severity="warning",
        variant=name,
        message="Decoding ran without CUDA graphs although they were not switched off."
        if off
        else "Some decode steps ran in a CUDA graph and some did not: these figures mix two speeds.",
        evidence="share of decode lines in a graph: "
        f"{span(f'{ratios[0]:.2f}', f'{ratios[-1]:.2f}')} over {counted(len(ratios), 'level')}",
        remedy="Capture graphs up to the largest batch offered (--cuda-graph-max-bs, or --cuda-graph-max-bs-decode from "
        "SGLang 0.5.20) and look for a line in server.log that says why capture was skipped.",
    )


CHECK: Final[Check] = check
