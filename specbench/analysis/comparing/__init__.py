"""Two sides, launch by launch, to a `Comparison`: may they be compared, did anything change, is it within the margin. Pure.

A *side* is one variant of one result. `docs/statistics.md` explains every number.

    keys        what must be the same on both sides
    columns     one launch's requests to figures
    launches    a side's launches, their figures, and what forbids to use them
    decide      log ratios to answers: paired t, Holm, gate, launches still needed
    prompts     acceptance prompt by prompt: a diagnostic
    compare     all of it together
    calibrate   launches of one and the same server: how far they differ by themselves
"""

from typing import Final, Literal

from msgspec import Struct

from specbench.units import Ratio

COMPARISON_SCHEMA_VERSION: Final = 1

PRIMARY: Final = ("output_tps", "accept_length", "ttft_p50_s", "tpot_p50_s")
"""The declared metrics when none are named; never more than four."""
PRIMARY_LIMIT_COUNT: Final = 4
PAIRS_LIMIT_COUNT: Final = 3
"""Fewer pairs are refused: two have one degree of freedom."""
ALPHA_RATIO: Final = 0.01
"""Of the whole family: how often a comparison of equals may say that something changed."""
MARGIN_RATIO: Final = 0.02
POWER_RATIO: Final = 0.9

Verdict = Literal["pass", "fail", "inconclusive", "refused"]
Gate = Literal["PASS", "FAIL", "INCONCLUSIVE"]
EXIT_CODES: Final[dict[str, int]] = {"pass": 0, "fail": 1, "refused": 2, "inconclusive": 3}


class Options(Struct, frozen=True, kw_only=True):
    """What the user declares before looking."""

    metrics: tuple[str, ...] = PRIMARY
    factors: tuple[str, ...] = ()
    """Keys that are under test and may differ."""
    level: tuple[str, int] | None = None
    """Workload and concurrency that the answers are about; None: the mean of log ratios over all levels."""
    margin_ratio: Ratio = MARGIN_RATIO
    alpha_ratio: Ratio = ALPHA_RATIO
    variants: tuple[str, ...] = ()
    """Only these; all that both results hold when empty."""


class SideFacts(Struct, frozen=True, kw_only=True):
    """Which launches a side is made of."""

    folder: str
    started_utc: str
    variant: str
    launch_count: int
    engine: str
    """With its version."""


class Difference(Struct, frozen=True, kw_only=True):
    """One key whose value is not the same on both sides."""

    key: str
    a: str
    b: str


class Refusal(Struct, frozen=True, kw_only=True):
    """Why the two sides can't be compared."""

    code: str
    """`differs`, `launches_shared`, `too_few_launches`, `launch_failed`, `requests_failed`, `level_missing`,
    `launch_missing`, `lines_lost`, `impossible`, `gpu_throttled`, `simulated_against_real`, `not_measured`."""
    message: str


class Change(Struct, frozen=True, kw_only=True):
    """One metric at one level, B beside A, over pairs of launches. No test."""

    metric: str
    unit: str
    better: Literal["higher", "lower"]
    workload: str
    """`all`: geometric mean over the levels."""
    concurrency: int
    """0 for `all` and for an open loop."""
    a: float
    """Geometric mean over the launches, in `unit`."""
    b: float
    change_ratio: Ratio
    """B / A - 1."""
    low_ratio: Ratio | None = None
    """Of the interval at 1 - `interval_alpha_ratio`; None with fewer than two pairs."""
    high_ratio: Ratio | None = None
    pair_count: int = 0


class Answer(Struct, frozen=True, kw_only=True):
    """What is concluded about one primary metric."""

    change: Change
    """Its interval is at 1 - `interval_alpha_ratio`: it leaves 0 out exactly when `changed`."""
    interval_alpha_ratio: Ratio
    p_ratio: Ratio
    """Two-sided, of no change."""
    p_adjusted_ratio: Ratio
    """By Holm, over every primary metric of every variant in the comparison."""
    changed: bool
    direction: Literal["better", "worse", "none"]
    """`none` unless `changed`."""
    gate: Gate | None
    """None where the metric is not gated; `gate_note` says why."""
    gate_note: str = ""
    launches_needed_count: int | None = None
    """Pairs in all that would decide an INCONCLUSIVE gate 9 times in 10; None when decided, or for more than 200."""
    pair_sd_ratio: Ratio
    """Standard deviation of one pair's log ratio."""
    detectable_ratio: Ratio
    """Smallest change that so many pairs find 9 times in 10."""
    sd_source: Literal["these launches", "calibration"] = "these launches"
    """What `launches_needed_count` rests on."""


class PromptAcceptance(Struct, frozen=True, kw_only=True):
    """A diagnostic: acceptance length on the prompts that both sides answered, each prompt one cluster."""

    prompt_count: int
    a_accept_length: float
    b_accept_length: float
    change_ratio: Ratio
    low_ratio: Ratio
    high_ratio: Ratio
    alpha_ratio: Ratio


class VariantComparison(Struct, frozen=True, kw_only=True):
    """One variant of A beside one of B."""

    a: SideFacts
    b: SideFacts
    verdict: Verdict
    under_test: tuple[Difference, ...] = ()
    """Keys that differ and were declared."""
    refusals: tuple[Refusal, ...] = ()
    answers: tuple[Answer, ...] = ()
    levels: tuple[Change, ...] = ()
    """Every metric at every level: descriptive."""
    prompts: PromptAcceptance | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`eagle-d4`, or `baseline → eagle-d4`."""
        return self.a.variant if self.a.variant == self.b.variant else f"{self.a.variant} → {self.b.variant}"


class Comparison(Struct, frozen=True, kw_only=True):
    """The whole answer: all that render and an exit code need."""

    schema_version: int = COMPARISON_SCHEMA_VERSION
    suite_name: str
    verdict: Verdict
    """`fail` if any variant fails, else `refused`, else `inconclusive`, else `pass`."""
    a_folder: str
    b_folder: str
    within: bool
    """Both sides come from one run, whose launches alternate."""
    simulated: bool
    rehearsal: str | None
    alpha_ratio: Ratio
    margin_ratio: Ratio
    power_ratio: Ratio = POWER_RATIO
    family_count: int
    """Tests that Holm corrects for."""
    level: str
    """What the answers are about: `all levels` or `chat at 8`."""
    variants: tuple[VariantComparison, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 2 refused, 3 inconclusive."""
        return EXIT_CODES[self.verdict]
