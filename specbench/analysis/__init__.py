"""Records to judgement: pure functions and the values they give. `render` sees only `Judgement`."""

from typing import Literal

from msgspec import Struct

from specbench.units import PerSecond, Ratio, Second

Severity = Literal["error", "warning", "note"]


class Finding(Struct, frozen=True, kw_only=True):
    """A doubt or a fault, with a remedy."""

    code: str
    severity: Severity
    variant: str | None = None
    message: str
    """One sentence: what is seen."""
    evidence: str = ""
    """The numbers behind it."""
    remedy: str = ""
    """What to do."""


class Quantiles(Struct, frozen=True, kw_only=True):
    """Of the measured, successful requests of a cell, pooled over its launches."""

    p50_s: Second
    p99_s: Second
    count: int


class Summary(Struct, frozen=True, kw_only=True):
    """One cell of the result: variant × workload × concurrency. None: not measured, never zero."""

    variant: str
    workload: str
    concurrency: int
    launch_count: int
    request_count: int
    failed_count: int
    output_tps: PerSecond | None = None
    """Output tokens / wall time from the first due to the last done; mean of launches by ratio of totals."""
    steady_tps: PerSecond | None = None
    """The same over the window in which the offered concurrency was held."""
    goodput_rps: PerSecond | None = None
    """Requests a second that kept the workload's `slo`; None where it states none."""
    per_user_tps: PerSecond | None = None
    """1 / TPOT p50."""
    speedup_ratio: Ratio | None = None
    """`output_tps` over the baseline's; None also when arms are not comparable."""
    speedup_low_ratio: Ratio | None = None
    """Of its interval at 99 % over pairs of launches; None with fewer than three pairs."""
    speedup_high_ratio: Ratio | None = None
    accept_length: float | None = None
    """Pooled: 1 + Σ correct drafts / Σ verify steps. None without speculation or without a count."""
    accept_source: Literal["requests", "metrics", "log", "none"] = "none"
    """The requests' own counters; else the server's, before and after each level; else its log."""
    accept_rate_ratio: Ratio | None = None
    """(AL - 1) / K, recomputed."""
    proposed_tokens: int | None = None
    """K, as the server resolved it."""
    break_even_length: float | None = None
    """AL at which this variant's step time would just match the baseline."""
    ttft: Quantiles | None = None
    tpot: Quantiles | None = None
    graph_ratio: Ratio | None = None
    """Share of decode samples that ran in a CUDA graph; None when the engine does not say."""
    step_time: Quantiles | None = None
    """Gap between chunks, pooled over the requests of the cell."""
    tpot_source: Literal["chunks", "assumed_first_token", "none"] = "none"
    """`assumed_first_token`: the server counts tokens only at the end, and one token is assumed in the first chunk."""
    longest_accept_tokens: int | None = None
    """The ceiling of AL: min(K, steps) + 1."""
    efficiency_ratio: Ratio | None = None
    """Speed-up / AL = 1 / break-even AL."""
    verdict: str = "unknown"
    """healthy, slower_than_baseline, dead_drafter, graphs_off, failed, baseline, unknown, …"""


class VariantVerdict(Struct, frozen=True, kw_only=True):
    """The sentence a person reads about a variant."""

    variant: str
    verdicts: tuple[str, ...]
    sentence: str


class Part(Struct, frozen=True, kw_only=True):
    """A share of the requests, or of their steps."""

    name: str
    accept_length: float
    verify_count: int
    """Steps that the figure rests on."""


class Profile(Struct, frozen=True, kw_only=True):
    """One speculating variant, all its levels together."""

    variant: str
    position_ratio: tuple[Ratio, ...] = ()
    """Share of steps in which the first, second, … draft token was accepted; empty without a histogram."""
    categories: tuple[Part, ...] = ()
    depths: tuple[Part, ...] = ()
    """By output tokens before the step; only where each chunk is a step."""
    quarters: tuple[Part, ...] = ()
    """Of the run, by the order in which requests were sent."""


class Judgement(Struct, frozen=True, kw_only=True):
    """All that render sees."""

    suite_name: str
    run_folder: str
    baseline: str
    simulated: bool
    rehearsal: str | None
    started_utc: str
    complete: bool
    model: str
    engines: tuple[str, ...]
    """`sglang 0.5.23`, one an engine."""
    summaries: tuple[Summary, ...]
    verdicts: tuple[VariantVerdict, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    profiles: tuple[Profile, ...] = ()
    """Acceptance taken apart, of each variant that speculates and whose engine counts by request."""
    overview: tuple[Summary, ...] = ()
    """Variant × concurrency, all workloads pooled by ratio of totals (`workload` is `all`); empty with one workload."""
