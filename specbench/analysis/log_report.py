"""A server's log, whichever engine wrote it, read once: acceptance, speed, start-up, death, verdicts."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import median
from typing import Any, Final

from msgspec import Struct

from specbench.analysis import log_findings
from specbench.analysis.acceptance import LogReport, read_log
from specbench.analysis.log_counts import Counts, Pool
from specbench.analysis.log_tally import Bucket, Phase, Tally
from specbench.dialects import DeathCause, LogLine, llamacpp_events, sglang_death, sglang_version, vllm_death
from specbench.dialects.detect import Engine, engine_of
from specbench.dialects.llamacpp_log import LlamaLog
from specbench.dialects.sglang_args import argument_facts
from specbench.dialects.sglang_log import parse_line as parse_sglang
from specbench.dialects.vllm_log import parse_line as parse_vllm
from specbench.units import PerSecond, Ratio

DETECT_LINES: Final = 5000
"""So many lines are looked at before an engine must be named."""

COUNTS_CONVENTION: Final = {"vllm": "percent_accepted_over_drafted", "llamacpp": "fraction_accepted_over_generated"}


class LogStudy(Struct, frozen=True, kw_only=True):
    """What a log says. None: it does not say."""

    engine: str
    engine_version: str | None
    line_count: int
    record_count: int
    pooled_accept_length: Pool | None
    accept_rate_ratio: Ratio | None
    """(AL - 1) / K, recomputed."""
    accept_rate_convention: str | None
    """What the printed rate means."""
    k: int | None
    """Tokens proposed a step."""
    per_position: tuple[Ratio, ...]
    last_useful_position: int | None
    decode_graph_ratio: Ratio | None
    median_tps: PerSecond | None
    """Without stale records."""
    stale_count: int
    buckets: tuple[Bucket, ...]
    phases: tuple[Phase, ...]
    started: bool
    cause: DeathCause | None
    settings: dict[str, Any]
    verdicts: tuple[str, ...]
    findings: tuple[log_findings.LogFinding, ...]
    line_kinds: dict[str, int]
    unrecognised: tuple[tuple[int, str], ...]
    """The first few, with their line numbers."""


def study(lines: Iterable[str], engine: Engine | None = None, version: str | None = None) -> LogStudy | None:
    """Reads a log once. None when no line tells the engine. Never raises."""
    source = iter(lines)
    ahead: list[str] = []
    while engine is None and len(ahead) < DETECT_LINES and (line := next(source, None)) is not None:
        ahead.append(line)
        engine = engine_of(line)
    if engine is None:
        return None
    tally = Tally(engine, version)
    report = _read(tally, tally.lines(itertools.chain(ahead, source)))
    return _study(tally, report)


def _read(tally: Tally, lines: Iterator[str]) -> LogReport | None:
    if tally.engine == "sglang":

        def parse(line: str) -> LogLine:
            read = parse_sglang(line)
            for one in (read, *read.also):
                tally.add(one)
            return read

        meaning: Callable[..., Any] = partial(sglang_version.rate_meaning, version=tally.version)
        return read_log(lines, parse, rate_meaning=meaning)
    parse_line = parse_vllm if tally.engine == "vllm" else LlamaLog().parse_line
    for line in lines:
        tally.add(parse_line(line))
    return None


def _study(tally: Tally, report: LogReport | None) -> LogStudy:
    counts = tally.counts
    pooled = counts.pooled(tally.engine) if report is None else _pool_of(report, counts)
    k = _k(tally, report)
    cause = _cause(tally)
    buckets = tally.timeline.buckets()
    stale = tally.stale() if report is None else list(report.lines["stale"])
    facts = _facts(tally, report, pooled, k, cause)
    found = log_findings.findings(facts)
    return LogStudy(
        engine=tally.engine,
        engine_version=tally.version,
        line_count=tally.number,
        record_count=tally.samples,
        pooled_accept_length=pooled,
        accept_rate_ratio=(pooled.value - 1) / k if pooled and k else None,
        accept_rate_convention=report.accept_rate_convention if report else _convention(tally),
        k=k,
        per_position=counts.per_position,
        last_useful_position=counts.last_useful_position,
        decode_graph_ratio=report.decode_graph_ratio if report else None,
        median_tps=report.median_tps if report else (median(tally.rates) if tally.rates else None),
        stale_count=len(stale),
        buckets=buckets,
        phases=tuple(tally.phases.values()),
        started=tally.ready,
        cause=cause,
        settings={name: tally.settings[name] for name in SETTINGS if name in tally.settings},
        verdicts=log_findings.verdicts(facts, found),
        findings=found,
        line_kinds=dict(tally.kinds),
        unrecognised=tuple(tally.unrecognised),
    )


SETTINGS: Final = (
    "method",
    "spec_type",
    "drafter",
    "k",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "model_path",
    "tp_size",
    "synthetic",
    "eager",
)


def _facts(
    tally: Tally, report: LogReport | None, pooled: Pool | None, k: int | None, cause: DeathCause | None
) -> log_findings.Facts:
    counts = tally.counts
    return log_findings.Facts(
        engine=tally.engine,
        pooled_length=pooled.value if pooled else None,
        longest_length=counts.longest_length if report is None else (1.0 if report.dead_drafter else 2.0),
        record_count=tally.samples,
        k=k,
        last_useful_position=counts.last_useful_position,
        settings=tally.settings,
        warning_lines=tally.warnings,
        request_count=tally.requests or tally.busy_after_last or (report.sample_count if report else 0),
        busy_after_last_count=tally.busy_after_last,
        graph_ratio=report.decode_graph_ratio if report else None,
        speculation_active=report.speculation_active if report else None,
        bucket_length=tuple(one.accept_length for one in tally.timeline.buckets(6) if one.accept_length is not None),
        died=cause is not None,
    )


def _convention(tally: Tally) -> str | None:
    if not tally.samples:
        return None
    if tally.counts.v0 is not None:
        return "fraction_accepted_over_drafted_incl_after_rejection"
    return "percent_accepted_over_drafted" if tally.is_tool else COUNTS_CONVENTION[tally.engine]


def _pool_of(report: LogReport, counts: Counts) -> Pool | None:
    pooled = report.pooled_accept_length
    if pooled is None:
        return None
    return Pool(
        value=pooled.value,
        method="mean of decode lines",
        weight_count=float(len(pooled.lines)),
        weights=pooled.weights,
        estimate=pooled.estimate,
        error_length=counts.spread.error,
    )


def _k(tally: Tally, report: LogReport | None) -> int | None:
    if report is not None:
        stated = argument_facts(tally.settings, tally.version).draft_tokens or report.draft_tokens
        return stated - 1 if stated else None
    stated_k = tally.settings.get("k")
    return stated_k if isinstance(stated_k, int) else tally.counts.k


def _cause(tally: Tally) -> DeathCause | None:
    """None when the log names none."""
    if tally.engine != "llamacpp" and tally.ready and not tally.kinds["fatal"]:
        return None
    lines, number_of = tally.kept()
    if tally.engine == "sglang":
        found = sglang_death.diagnose(lines, None, (), tally.version) if tally.kinds["fatal"] else None
    elif tally.engine == "vllm":
        found = vllm_death.diagnose(lines)
    else:
        found = llamacpp_events.diagnose(lines) if tally.kinds["fatal"] else None
    if found is None or (found.code == "unknown" and not tally.kinds["fatal"]):
        return None
    line = found.decisive_line
    return DeathCause(
        code=found.code,
        sentence=found.sentence,
        decisive_line=None if line is None else number_of(line),
        values=found.values,
        advice=found.advice,
    )
