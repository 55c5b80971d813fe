"""All that a page shows of a stored run: the judgement, and beside it what was seen launch by launch. Pure."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from specbench.analysis import Judgement
from specbench.analysis.cells import Arm, Cell, arms_of, suite_of
from specbench.analysis.judge import judge_run
from specbench.analysis.metrics import quantile, tpots_s, ttfts_s
from specbench.analysis.parity import Difference, differences
from specbench.analysis.telemetry import Series, series_of
from specbench.store import StoredRun, StoredTrial
from specbench.suite import Suite, Variant
from specbench.units import Ratio, Second, counted

SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Of the requests, at which a distribution is told."""


class Distribution(Struct, frozen=True, kw_only=True):
    """A latency of the served requests of one cell, pooled over its launches."""

    variant: str
    workload: str
    concurrency: int
    metric: str
    """`TTFT` or `TPOT`."""
    quantiles_s: tuple[Second, ...]
    """At `SHARES`."""
    request_count: int


class Span(Struct, frozen=True, kw_only=True):
    """A stretch of a launch, on its own clock."""

    kind: str
    """`phase` or `level`."""
    name: str
    workload: str = ""
    """Of a level."""
    begin_s: Second
    end_s: Second


class Launch(Struct, frozen=True, kw_only=True):
    """One launch, from its start to its end."""

    variant: str
    launch_index: int
    started_utc: str
    ended_s: Second
    """When the last thing of it was seen."""
    spans: tuple[Span, ...]
    failure: str | None
    log_tail: tuple[str, ...]
    command: str
    """What started the server, ready to paste; empty where none was started."""
    telemetry: tuple[Series, ...] = ()

    @property
    def name(self) -> str:
        """`variant, launch 1`: counted from 1, as people do."""
        return f"{self.variant}, launch {self.launch_index + 1}"


class Traits(Struct, frozen=True, kw_only=True):
    """What tells one variant from another in a plot."""

    variant: str
    drafter: str | None
    """Its name, else its method; None without speculation."""
    draft_tokens: int | None
    cuda_graph: bool | None
    longest_accept_tokens: int | None
    synthetic: bool = False
    """Its acceptance was ordered, not earned; it is never ranked."""


class Dossier(Struct, frozen=True, kw_only=True):
    """Everything behind one page."""

    judgement: Judgement
    traits: tuple[Traits, ...]
    distributions: tuple[Distribution, ...]
    launches: tuple[Launch, ...]
    differences: tuple[Difference, ...]
    unresolved: tuple[str, ...]
    """Variants whose server did not tell its settings."""
    environment: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    """To run the same again."""


def dossier_of(stored: StoredRun, judgement: Judgement | None = None) -> Dossier:
    """`judgement`: of the same run, where it is at hand. Raises StoreError when the run's suite can't be read."""
    suite = suite_of(stored)
    arms = arms_of(suite, stored.trials)
    return Dossier(
        judgement=judgement or judge_run(stored),
        traits=tuple(traits_of(arm) for arm in arms.values()),
        distributions=tuple(one for arm in arms.values() for one in _distributions(arm)),
        launches=tuple(launch_of(one) for one in stored.trials),
        differences=tuple(one for arm in arms.values() for one in differences(arm, arms[suite.baseline])),
        unresolved=tuple(name for name, arm in arms.items() if arm.launch_count and not arm.resolved),
        environment=tuple(_environment(stored, suite)),
        commands=commands_of(stored),
    )


def traits_of(arm: Arm) -> Traits:
    """From the suite."""
    variant: Variant = arm.variant
    speculation = variant.speculation
    return Traits(
        variant=variant.name,
        drafter=(speculation.drafter or speculation.method or "speculation") if speculation else None,
        draft_tokens=speculation.draft_tokens if speculation else None,
        cuda_graph=variant.cuda_graph,
        longest_accept_tokens=arm.longest_accept_tokens,
        synthetic=arm.is_synthetic,
    )


def _distributions(arm: Arm) -> Iterable[Distribution]:
    for cell in arm.cells.values():
        yield from _of_cell(arm.variant.name, cell)


def _of_cell(variant: str, cell: Cell) -> Iterable[Distribution]:
    for metric, values in (("TTFT", ttfts_s(cell)), ("TPOT", tpots_s(cell))):
        if values:
            yield Distribution(
                variant=variant,
                workload=cell.workload,
                concurrency=cell.concurrency,
                metric=metric,
                quantiles_s=tuple(quantile(values, share) or 0.0 for share in SHARES),
                request_count=len(values),
            )


def launch_of(stored: StoredTrial) -> Launch:
    """Phases end where the next begins, the last one when the server is ready, or when the load begins or all ends."""
    record = stored.record
    seen = [one.ended_s for one in record.levels] + [one.at_s for one in record.phases]
    seen += [one.at_s for one in stored.observations[-1:]] + [one.done_s for one in stored.requests[-1:]]
    ended_s = record.ended_s if record.ended_s is not None else max(seen, default=0.0)
    begins = [("launch", 0.0), *((one.name, one.at_s) for one in record.phases)]
    ready_s = (
        record.ready_s if record.ready_s is not None else min((one.started_s for one in record.levels), default=ended_s)
    )
    ends = [at_s for _, at_s in begins[1:]] + [ready_s]
    phases = [
        Span(kind="phase", name=name, begin_s=begin_s, end_s=max(begin_s, end_s))
        for (name, begin_s), end_s in zip(begins, ends, strict=True)
    ]
    levels = [
        Span(
            kind="level",
            name=_level(one.workload, one.concurrency),
            workload=one.workload,
            begin_s=one.started_s,
            end_s=one.ended_s,
        )
        for one in record.levels
    ]
    return Launch(
        variant=record.trial.variant,
        launch_index=record.trial.launch_index,
        started_utc=record.started_utc,
        ended_s=ended_s,
        spans=tuple(phases + levels),
        failure=record.failure.cause if record.failure else None,
        log_tail=record.failure.log_tail if record.failure else (),
        command=command_of(record.argv, record.env),
        telemetry=series_of(stored.observations),
    )


def _level(workload: str, concurrency: int) -> str:
    return f"{workload} at {concurrency}" if concurrency else f"{workload}, open loop"


def command_of(argv: Iterable[str], env: Mapping[str, str]) -> str:
    """One line for a shell, every word quoted where it must be."""
    words = [f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())]
    return " ".join([*words, *map(shlex.quote, argv)])


def commands_of(stored: StoredRun) -> tuple[str, ...]:
    """The suite as it stands in the run's folder, then the tables and this page from what is stored."""
    folder = shlex.quote(stored.folder)
    rehearse = " --rehearse" if stored.run.rehearsal else ""
    full = " --full" if (stored.run.rehearsal or "").startswith("the whole load") else ""
    again = f"specbench run {shlex.quote(stored.folder + '/suite.yaml')}{rehearse}{full}"
    return (again, f"specbench report {folder}")


def value_text(value: Any) -> str:
    """A setting's or a fact's value."""
    return "–" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _environment(stored: StoredRun, suite: Suite) -> Iterable[tuple[str, str]]:
    """Name and value; where a value could not be read, the reason."""
    run = stored.run
    yield "specbench", run.specbench_version
    yield "started", run.started_utc
    yield "ended", run.ended_utc or "–"
    yield "target", suite.model.path + (f" at {suite.model.revision}" if suite.model.revision else "")
    for name, drafter in suite.drafters.items():
        yield f"drafter {name}", drafter.path
    reasons = run.environment.get("reasons")
    reasons = reasons if isinstance(reasons, dict) else {}
    for name, value in run.environment.items():
        if name not in ("reasons", "specbench_version"):
            yield name, str(reasons.get(name, "–")) if value is None else _flat(value)
    for name, value in run.datasets.items():
        if isinstance(value, dict):
            prompts = value.get("prompt_ids")
            count = f", {counted(len(prompts), 'prompt')}" if isinstance(prompts, list) else ""
            yield f"prompts of {name}", f"{value.get('dataset')}{count}, sha256 {value.get('sha256')}"


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(one)}" for name, one in value.items())
    if isinstance(value, list):
        return "; ".join(map(_flat, value))
    return value_text(value)


def share_name(share: Ratio) -> str:
    """`p50`."""
    return f"p{round(100 * share)}"
