"""A server's log, whichever engine wrote it, read once: acceptance, speed, start-up, death, verdicts."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import median
from typing import Any, Final

from msgspec import Struct

from specbench.analysis import log_findings
from specbench.analysis.acceptance import LogReader, LogReport
from specbench.analysis.log_columns import decode_rows, take_prefills
from specbench.analysis.log_counts import Counts, Pool
from specbench.analysis.log_ends import Ends
from specbench.analysis.log_facts import Facts, LogFinding
from specbench.analysis.log_tally import Bucket, Phase, Tally
from specbench.dialects import DeathCause, llamacpp_events, sglang_death, sglang_version, vllm_death
from specbench.dialects.blocks import Block
from specbench.dialects.detect import Engine
from specbench.dialects.readers import DETECT_BYTES, engine_in, reader_for
from specbench.dialects.sglang_args import argument_facts
from specbench.units import PerSecond, Ratio

BATCH_LINES: Final = 4096

Text = tuple[memoryview, int]
"""A block of whole lines and its size in bytes."""

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
    dp_ranks: tuple[int, ...]
    """SGLang's data-parallel ranks that wrote; a line tells of one rank's requests only."""
    stale_count: int
    buckets: tuple[Bucket, ...]
    phases: tuple[Phase, ...]
    started: bool
    cause: DeathCause | None
    settings: dict[str, Any]
    verdicts: tuple[str, ...]
    findings: tuple[LogFinding, ...]
    line_kinds: dict[str, int]
    unrecognised: tuple[tuple[int, str], ...]
    """The first few, with their line numbers."""


def study(lines: Iterable[str], engine: Engine | None = None, version: str | None = None) -> LogStudy | None:
    """Reads a log's lines once. None when no line tells the engine. Never raises."""
    return study_blocks(blocks_of(lines), engine, version)


def blocks_of(lines: Iterable[str]) -> Iterator[Text]:
    """Lines, with or without their ends, as blocks."""
    source = iter(lines)
    while batch := list(itertools.islice(source, BATCH_LINES)):
        text = "".join(line.rstrip("\n") + "\n" for line in batch).encode("utf-8", "replace")
        yield memoryview(text), len(text)


def study_blocks(
    blocks: Iterable[Text],
    engine: Engine | None = None,
    version: str | None = None,
    on_block: Callable[[Tally], None] | None = None,
) -> LogStudy | None:
    """As `study`. A block is whole lines and its size; all but the last `MOST_HELD` may be overwritten once the next is
    asked for. `on_block` is called after each."""
    source = iter(blocks)
    first: list[Text] = []
    while engine is None and sum(size for _, size in first) < DETECT_BYTES and (text := next(source, None)) is not None:
        first.append((memoryview(bytes(text[0])), text[1]))
        engine = engine_in(*text)
    if engine is None:
        return None
    reader = reader_for(engine)
    return study_read((reader.read(*text) for text in itertools.chain(first, source)), engine, version, on_block)


def study_read(
    blocks: Iterable[Block], engine: Engine, version: str | None, on_block: Callable[[Tally], None] | None = None
) -> LogStudy:
    """As `study_blocks`, of blocks that somebody has read."""
    tally, reader = Tally(engine, version), LogReader()
    ends, number = Ends(), 0
    for block in blocks:
        _take(block, number, tally, reader)
        tally.impossible = reader.impossible_count
        ends.take(block, number)
        number += block.line_count
        if on_block is not None:
            on_block(tally)
    tally.number = number
    meaning = partial(sglang_version.rate_meaning, version=tally.version)
    return _study(tally, ends, reader.report(number, meaning, None) if engine == "sglang" else None)


def _take(block: Block, lines_before: int, tally: Tally, reader: LogReader) -> None:
    """Counts a block. SGLang's decode lines are counted as columns."""
    slow_ts: dict[int, str | None] = {}
    for index, line in block.slow:
        for one in (line, *line.also):
            tally.add(lines_before + index + 1, one)
        if tally.engine == "sglang":
            reader.add(lines_before + index + 1, line)
            slow_ts[lines_before + index + 1] = line.ts
    if tally.engine != "sglang":
        return
    tally.kinds.update(block.counts)
    rows = reader.take(decode_rows(block, lines_before), take_prefills(block, lines_before, reader))

    def ts(place: int) -> str | None:
        number = int(rows.line[place])
        return slow_ts[number] if number in slow_ts else block.ts(number - lines_before - 1)

    tally.add_rows(rows, ts)


def _study(tally: Tally, ends: Ends, report: LogReport | None) -> LogStudy:
    counts = tally.counts
    pooled = counts.pooled(tally.engine) if report is None else _pool_of(report, counts)
    k = _k(tally, report)
    cause = _cause(tally, ends)
    buckets = tally.timeline.buckets()
    facts = _facts(tally, report, pooled, k, cause)
    found = log_findings.findings(facts)
    return LogStudy(
        engine=tally.engine,
        engine_version=tally.version,
        line_count=tally.number,
        record_count=report.sample_count if report else tally.samples,
        pooled_accept_length=pooled,
        accept_rate_ratio=(pooled.value - 1) / k if pooled and k else None,
        accept_rate_convention=report.accept_rate_convention if report else _convention(tally),
        k=k,
        per_position=counts.per_position,
        last_useful_position=counts.last_useful_position,
        decode_graph_ratio=report.decode_graph_ratio if report else None,
        median_tps=report.median_tps if report else (median(tally.rates) if tally.rates else None),
        dp_ranks=report.dp_ranks if report else (),
        stale_count=len(tally.stale()) if report is None else report.stale_count,
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


def _facts(tally: Tally, report: LogReport | None, pooled: Pool | None, k: int | None, cause: DeathCause | None) -> Facts:
    counts = tally.counts
    return Facts(
        engine=tally.engine,
        pooled_length=pooled.value if pooled else None,
        longest_length=counts.longest_length if report is None else report.longest_length,
        idle_tail_count=report.idle_tail_count if report else 0,
        switched_off=report.switched_off if report else None,
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
        restart_count=tally.restart_count,
        foreign_count=dict(tally.foreign),
        unread_count=tally.kinds["partial"] + tally.kinds["unrecognised"],
        impossible_count=tally.impossible,
        fault_count=tally.kinds["fatal"],
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
        weight_count=float(pooled.line_count),
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


def _cause(tally: Tally, ends: Ends) -> DeathCause | None:
    """None when the log names none."""
    if tally.engine != "llamacpp" and tally.ready and not tally.kinds["fatal"]:
        return None
    lines, number_of = ends.kept()
    if tally.engine == "sglang":
        wanted = tally.kinds["fatal"] or (not tally.ready and not tally.samples and sglang_death.ends_in_traceback(lines))
        found = sglang_death.diagnose(lines, None, (), tally.version) if wanted else None
    elif tally.engine == "vllm":
        found = vllm_death.diagnose(lines)
    else:
        found = llamacpp_events.diagnose(lines) if tally.kinds["fatal"] else None
    if found is None or (found.code == "unknown" and not tally.kinds["fatal"]):
        return None
    line = found.decisive_line
    if tally.engine == "sglang" and not tally.killed and line is not None and number_of(line) < tally.last_record:
        return None  # it went on, or was started again
    return DeathCause(
        code=found.code,
        sentence=found.sentence,
        decisive_line=None if line is None else number_of(line),
        values=found.values,
        advice=found.advice,
    )
