"""A log's study as text of a given width, and as strict JSON."""

import json
import math
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from specbench.analysis.log_counts import Pool
from specbench.analysis.log_report import LogStudy
from specbench.analysis.log_tally import Bucket
from specbench.render import words
from specbench.units import counted

NAMES: Final = {"sglang": "SGLang", "vllm": "vLLM", "llamacpp": "llama.cpp"}
NO_FINDING: Final = "nothing is wrong by this log alone; whether speculation pays takes a baseline"


def as_json(study: LogStudy) -> str:
    """Strict JSON: no NaN, no Infinity. Ends with a line break."""
    return json.dumps(_finite(msgspec.to_builtins(study)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render(study: LogStudy, columns: int) -> str:
    """Ends with a line break."""
    lines = [*_head(study), "", *_figures(study)]
    if study.buckets:
        lines += ["", *_over_time(study.buckets)]
    if study.phases:
        lines += ["", "start-up", *_phases(study)]
    lines += ["", *_findings(study), *_unknown(study)]
    return "\n".join(part for line in lines for part in _wrap(line, columns)) + "\n"


def live_line(bucket: Bucket) -> str:
    """What is new in a log that is followed."""
    ts = words.clean(bucket.last_ts or words.NOTHING)[:27]
    length, rate = words.length(bucket.accept_length), words.rate(bucket.gen_throughput_tps)
    return f"{ts:<28}{bucket.record_count:>6} records   AL {length:>5}   {rate:>8} tok/s"


def _head(study: LogStudy) -> Iterator[str]:
    version = f" {words.clean(study.engine_version)}" if study.engine_version else ""
    count = study.record_count
    records = counted(count, "decode line") if study.engine == "sglang" else f"{counted(count, 'record')} of acceptance"
    yield f"{NAMES[study.engine]}{version}: {counted(study.line_count, 'line')}, {records}"
    if study.settings:
        yield "set: " + ", ".join(f"{name}={words.clean(str(value))}" for name, value in study.settings.items())
    yield "verdict: " + ", ".join(words.verdict(code) for code in study.verdicts)


def _figures(study: LogStudy) -> Iterator[str]:
    pooled = study.pooled_accept_length
    if pooled is None:
        yield "acceptance length    – (the log does not give it)"
    else:
        bound = f" ± {pooled.error_length:.2f}" if pooled.error_length is not None else ""
        about = "~" if pooled.estimate else ""
        yield f"acceptance length    {about}{pooled.value:.2f}{bound}   {_basis(study, pooled)}"
    if study.k is not None:
        rate = (
            f"; accept rate {words.percent(study.accept_rate_ratio)} %, recomputed"
            if study.accept_rate_ratio is not None
            else ""
        )
        yield f"draft tokens a step  K = {study.k}{rate}"
    if study.per_position:
        yield "by position          " + " ".join(f"{rate:.2f}" for rate in study.per_position)
    if study.median_tps is not None:
        stale = f" ({study.stale_count} stale left out)" if study.stale_count and study.engine == "sglang" else ""
        ranks = f" of one rank's lines; {len(study.dp_ranks)} data-parallel ranks write" if len(study.dp_ranks) > 1 else ""
        yield f"throughput           {words.rate(study.median_tps)} tok/s, median{ranks}{stale}"
    if study.decode_graph_ratio is not None:
        yield f"in CUDA graphs       {words.percent(study.decode_graph_ratio)} % of decode lines"


def _basis(study: LogStudy, pooled: Pool) -> str:
    if study.engine != "sglang":
        return f"{pooled.method}, over {counted(round(pooled.weight_count), 'verify step')}"
    weights = ", weighted by running requests" if pooled.weights == "running_requests" else ""
    return f"mean of {counted(round(pooled.weight_count), 'decode line')}{weights}"


def _over_time(buckets: tuple[Bucket, ...]) -> Iterator[str]:
    yield f"{'from':<28}{'records':>8}{'AL':>8}{'tok/s':>10}"
    for one in buckets:
        ts = words.clean(one.first_ts or words.NOTHING)[:27]
        yield f"{ts:<28}{one.record_count:>8}{words.length(one.accept_length):>8}{words.rate(one.gen_throughput_tps):>10}"


def _phases(study: LogStudy) -> Iterator[str]:
    for phase in study.phases:
        elapsed = f"{phase.elapsed_s:g} s" if phase.elapsed_s is not None else ""
        yield f"  {words.clean(phase.ts or ''):<28}{phase.name.replace('_', ' '):<24}{elapsed}".rstrip()


def _findings(study: LogStudy) -> Iterator[str]:
    if study.cause is not None:
        line = f"line {study.cause.decisive_line}: " if study.cause.decisive_line else ""
        yield f"cause of death ({study.cause.code}): {line}{words.clean(study.cause.sentence)}"
        if study.cause.advice:
            yield f"  do: {words.clean(study.cause.advice)}"
    for one in study.findings:
        yield f"{one.severity}: {one.code}: {words.clean(one.message)}"
        if one.remedy:
            yield f"  do: {words.clean(one.remedy)}"
    if study.cause is None and not study.findings:
        yield NO_FINDING


def _unknown(study: LogStudy) -> Iterator[str]:
    partial = study.line_kinds.get("partial", 0)
    if partial:
        yield f"{partial} line{' was' if partial == 1 else 's were'} cut off, or can't be read; not counted"
    count = study.line_kinds.get("unrecognised", 0)
    if count:
        yield f"{counted(count, 'line', 'looks/look')} like figures in a shape that is not known:"
        yield from (f"  line {number}: {words.clean(text)}" for number, text in study.unrecognised)


def _wrap(line: str, columns: int) -> list[str]:
    if len(line) <= columns:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, columns, subsequent_indent=indent, break_on_hyphens=False) or [line]


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
