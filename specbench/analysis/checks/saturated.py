"""Where a sweep's goodput stopped growing."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding, Summary
from specbench.analysis.checks import Check, Evidence
from specbench.suite import Slo, Workload


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a sweep and variant: its best level."""
    sweeps: dict[str, list[Workload]] = {}
    for workload in evidence.suite.workloads:
        if workload.saturate is not None:
            sweeps.setdefault(workload.sweep_name, []).append(workload)
    for name, workloads in sweeps.items():
        for variant in evidence.arms:
            rows = [row for row in evidence.rows(variant) if row.workload in {one.name for one in workloads}]
            yield from _of(name, workloads, variant, [row for row in rows if row.goodput_rps is not None])


def _of(name: str, workloads: list[Workload], variant: str, rows: list[Summary]) -> Iterable[Finding]:
    if not rows:
        return
    best = max(rows, key=lambda row: row.goodput_rps or 0.0)
    slo = workloads[0].slo
    assert slo is not None
    assert best.goodput_rps is not None
    reached_end = (best.workload, best.concurrency) == (workloads[-1].name, workloads[-1].concurrency[-1])
    where = f"{best.concurrency} streams" if best.concurrency else best.workload
    yield Finding(
        code="saturated",
        severity="note",
        variant=variant,
        message=f"Goodput of {name} {'still grew at' if reached_end else 'is highest at'} {where}: "
        f"{best.goodput_rps:.2f} requests/s with {_words(slo)}.",
        evidence="; ".join(f"{row.concurrency or row.workload}: {row.goodput_rps:.2f}/s" for row in rows),
        remedy="Raise the last level under `saturate` to find the end." if reached_end else "",
    )


def _words(slo: Slo) -> str:
    parts = [("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s)]
    return " and ".join(f"{name} ≤ {value * 1000:g} ms" for name, value in parts if value is not None)


CHECK: Final[Check] = check
