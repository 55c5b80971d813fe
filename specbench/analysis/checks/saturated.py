"""Where a sweep's goodput stopped growing."""

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from specbench.analysis import Finding, Summary
from specbench.analysis.checks import Check, Evidence
from specbench.suite import Slo, Workload
from specbench.units import counted

SHRUNK: Final = "Take no word of it from a rehearsal, whose load is small and whose server is imitated."


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a sweep and variant: its best level."""
    sweeps: dict[str, list[Workload]] = {}
    for workload in evidence.suite.workloads:
        if workload.saturate is not None:
            sweeps.setdefault(workload.sweep_name, []).append(workload)
    for name, workloads in sweeps.items():
        for variant in evidence.arms:
            rows = [row for row in evidence.rows(variant) if row.workload in {one.name for one in workloads}]
            for found in _of(name, workloads, variant, [row for row in rows if row.goodput_rps is not None]):
                yield structs.replace(found, remedy=SHRUNK) if evidence.stored.run.rehearsal else found


def _of(name: str, workloads: list[Workload], variant: str, rows: list[Summary]) -> Iterable[Finding]:
    if not rows:
        return
    best = max(rows, key=lambda row: row.goodput_rps or 0.0)
    slo = workloads[0].slo
    assert slo is not None
    assert best.goodput_rps is not None
    if best.goodput_rps == 0:
        yield Finding(
            code="saturated",
            severity="warning",
            variant=variant,
            message=f"No request of {name} kept {_words(slo)}, at any level.",
            evidence=_nearest(rows),
            remedy="Loosen `slo`, or look for what makes even the first level slow.",
        )
        return
    reached_end = (best.workload, best.concurrency) == (workloads[-1].name, workloads[-1].concurrency[-1])
    where = best.workload
    if best.concurrency:
        where = counted(best.concurrency, "stream")
    yield Finding(
        code="saturated",
        severity="note",
        variant=variant,
        message=f"Goodput of {name} {'still grew at' if reached_end else 'is highest at'} {where}: "
        f"{best.goodput_rps:.2f} requests/s with {_words(slo)}.",
        evidence="; ".join(f"{row.concurrency or row.workload}: {row.goodput_rps:.2f}/s" for row in rows),
        remedy="Raise the last level under `saturate` to find the end." if reached_end else "",
    )


def _nearest(rows: list[Summary]) -> str:
    named = [("TTFT", [row.ttft.p50_s for row in rows if row.ttft]), ("TPOT", [row.tpot.p50_s for row in rows if row.tpot])]
    return "; ".join(f"lowest {name} p50 {min(values) * 1000:.3g} ms" for name, values in named if values)


def _words(slo: Slo) -> str:
    parts = [("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s)]
    return " and ".join(f"{name} ≤ {value * 1000:g} ms" for name, value in parts if value is not None)


CHECK: Final[Check] = check
