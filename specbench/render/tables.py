"""A judgement as tables of strings, units in the headings. Terminal and Markdown draw them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from specbench.analysis import Judgement, Summary
from specbench.render import words

ALL_WORKLOADS: Final = "all workloads"


class Column(Struct, frozen=True, kw_only=True):
    """One heading, and how a row gives its text."""

    heading: str
    """In full, with its unit."""
    short: tuple[str, str]
    """The same in two lines, for a terminal."""
    of: Callable[[Summary], str]
    numeric: bool = True


class Table(Struct, frozen=True, kw_only=True):
    """Strings only, control characters stripped."""

    title: str
    columns: tuple[Column, ...]
    groups: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    """Name of the group (empty: no name) and its rows."""
    caption: str = ""

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Of all groups."""
        return tuple(row for _, rows in self.groups for row in rows)


VARIANT: Final = Column(heading="variant", short=("", "variant"), of=lambda row: words.clean(row.variant), numeric=False)
WORKLOAD: Final = Column(heading="workload", short=("", "workload"), of=lambda row: words.clean(row.workload), numeric=False)
CONCURRENCY: Final = Column(
    heading="concurrency (streams)", short=("", "streams"), of=lambda row: words.streams_count(row.concurrency)
)
OUTPUT: Final = Column(heading="tok/s", short=("", "tok/s"), of=lambda row: words.rate(row.output_tps))
STEADY: Final = Column(heading="steady-state tok/s", short=("steady", "tok/s"), of=lambda row: words.rate(row.steady_tps))
GOODPUT: Final = Column(heading="goodput (req/s)", short=("goodput", "req/s"), of=lambda row: words.length(row.goodput_rps))
PER_USER: Final = Column(heading="tok/s per user", short=("tok/s", "/user"), of=lambda row: words.rate(row.per_user_tps))
SPEEDUP: Final = Column(heading="speed-up (×)", short=("speed-", "up ×"), of=words.speedup)
LENGTH: Final = Column(heading="AL (tokens/step)", short=("", "AL"), of=words.accept_length)
BREAK_EVEN: Final = Column(heading="break-even AL", short=("even", "AL"), of=lambda row: words.length(row.break_even_length))
EFFICIENCY: Final = Column(
    heading="efficiency (speed-up/AL)", short=("effi-", "ciency"), of=lambda row: words.length(row.efficiency_ratio)
)
ACCEPT_RATE: Final = Column(heading="accept rate % (K)", short=("accept", "% (K)"), of=words.accept_rate)
TTFT: Final = Column(heading="TTFT p50/p99 (ms)", short=("TTFT ms", "p50/p99"), of=lambda row: words.pair_ms(row.ttft))
TPOT: Final = Column(
    heading="TPOT p50/p99 (ms)",
    short=("TPOT ms", "p50/p99"),
    of=lambda row: words.pair_ms(row.tpot, "~" if row.tpot_source == "assumed_first_token" else ""),
)
STEP: Final = Column(heading="step p50/p99 (ms)", short=("step ms", "p50/p99"), of=lambda row: words.pair_ms(row.step_time))
GRAPHS: Final = Column(heading="graph share (%)", short=("graph", "%"), of=lambda row: words.percent(row.graph_ratio))
REQUESTS: Final = Column(heading="requests", short=("", "requests"), of=lambda row: str(row.request_count))
FAILED: Final = Column(heading="failed", short=("", "failed"), of=words.failures)
VERDICT: Final = Column(heading="verdict", short=("", "verdict"), of=lambda row: words.verdict(row.verdict), numeric=False)

FIGURES: Final = (VARIANT, OUTPUT, GOODPUT, PER_USER, SPEEDUP, LENGTH, ACCEPT_RATE, TTFT, TPOT, GRAPHS, FAILED, VERDICT)
"""What a client wants to see in one line."""

SPEED: Final = (VARIANT, OUTPUT, STEADY, GOODPUT, PER_USER, SPEEDUP, LENGTH, BREAK_EVEN, EFFICIENCY, ACCEPT_RATE, VERDICT)
LATENCY: Final = (VARIANT, TTFT, TPOT, STEP, GRAPHS, REQUESTS, FAILED)
"""The same in two tables, where one is too wide."""

EVERYTHING: Final = (
    WORKLOAD,
    CONCURRENCY,
    VARIANT,
    OUTPUT,
    STEADY,
    GOODPUT,
    PER_USER,
    SPEEDUP,
    LENGTH,
    BREAK_EVEN,
    EFFICIENCY,
    ACCEPT_RATE,
    TTFT,
    TPOT,
    GRAPHS,
    REQUESTS,
    FAILED,
    VERDICT,
)


def telling(columns: Iterable[Column], summaries: Sequence[Summary]) -> tuple[Column, ...]:
    """Without the graph column when no engine says anything of graphs, without goodput when no workload has an `slo`."""
    idle = [GRAPHS] if all(row.graph_ratio is None for row in summaries) else []
    idle += [GOODPUT] if all(row.goodput_rps is None for row in summaries) else []
    return tuple(column for column in columns if column not in idle)


def stamped(title: str, judgement: Judgement) -> str:
    """A title that says SIMULATED where it must."""
    return f"{title} · SIMULATED" if judgement.simulated else title


def by_level(judgement: Judgement, summaries: Sequence[Summary], columns: Sequence[Column], title: str) -> Table:
    """A group a workload and concurrency, a row a variant."""
    levels = dict.fromkeys((row.workload, row.concurrency) for row in summaries)
    groups = tuple(
        (_level_name(*level), texts([row for row in summaries if (row.workload, row.concurrency) == level], columns))
        for level in levels
    )
    return Table(title=stamped(title, judgement), columns=tuple(columns), groups=groups)


def flat(judgement: Judgement, columns: Sequence[Column], title: str) -> Table:
    """Every cell a row, levels side by side."""
    levels = dict.fromkeys((row.workload, row.concurrency) for row in judgement.summaries)
    rows = [row for level in levels for row in judgement.summaries if (row.workload, row.concurrency) == level]
    return Table(title=stamped(title, judgement), columns=tuple(columns), groups=(("", texts(rows, columns)),))


def _level_name(workload: str, concurrency: int) -> str:
    return words.place(ALL_WORKLOADS if workload == "all" else workload, concurrency)


def texts(rows: Iterable[Summary], columns: Sequence[Column]) -> tuple[tuple[str, ...], ...]:
    """A row of strings a summary."""
    return tuple(tuple(column.of(row) for column in columns) for row in rows)


LEGEND: Final = (
    (OUTPUT, "tok/s: output tokens / (last done − first due), all streams together; /user: 1 / TPOT p50"),
    (
        STEADY,
        "steady tok/s: the same while all streams were in flight; open loop: from the first answer to the last arrival",
    ),
    (GOODPUT, "goodput: requests a second that kept the workload's `slo`"),
    (
        VARIANT,
        "speed-up ×: tok/s over the baseline's (open loop: per user); AL: tokens a verify step (1.00: no draft accepted)",
    ),
    (BREAK_EVEN, "even AL: the AL at which this variant would match the baseline"),
    (
        EFFICIENCY,
        "efficiency: speed-up / AL, the part of what was accepted that became speed; the rest is the price of a step",
    ),
    (ACCEPT_RATE, "accept % (K): (AL − 1) / K, K tokens proposed a step"),
    (TTFT, "TTFT: first chunk − due; TPOT: time a token after the first chunk; p99 interpolated linearly"),
    (GRAPHS, "graph %: decode lines of the log that ran in a CUDA graph"),
    (VARIANT, "~: estimated; –: not measured, or not comparable"),
)
"""What the headings mean, by the column that needs the line."""


def interval_legend(judgement: Judgement) -> tuple[str, ...]:
    """A line only where some speed-up has an interval."""
    told = any(row.speedup_low_ratio is not None for row in judgement.summaries)
    return ("speed-up × in brackets: 99 % interval over pairs of launches; one that holds 1 shows no difference",) * told


def legend(columns: Iterable[Column]) -> tuple[str, ...]:
    """The lines that these columns need."""
    shown = {column.heading for column in columns}
    return tuple(line for column, line in LEGEND if column.heading in shown)


def fit(table: Table, width: int, gap: int = 2) -> tuple[Table, ...]:
    """The same table in parts of at most `width` characters, each beginning with the first column.

    A part that holds a single further column may be wider: no figure is ever cut.
    """
    widths = [widest(table, index) for index in range(len(table.columns))]
    parts: list[list[int]] = [[0]]
    for index in range(1, len(widths)):
        used = sum(widths[one] + gap for one in parts[-1])
        if len(parts[-1]) > 1 and used + widths[index] > width:
            parts.append([0])
        parts[-1].append(index)
    return tuple(_part(table, indices) for indices in parts)


def widest(table: Table, index: int) -> int:
    """Characters that a column needs; names of groups stand in the first."""
    names = [name for name, _ in table.groups] if index == 0 else []
    indent = 2 if index == 0 and any(names) else 0
    texts = [row[index] for row in table.rows]
    return max([len(text) + indent for text in texts] + [len(one) for one in (*table.columns[index].short, *names)])


def _part(table: Table, indices: Sequence[int]) -> Table:
    return Table(
        title=table.title,
        columns=tuple(table.columns[index] for index in indices),
        groups=tuple((name, tuple(tuple(row[index] for index in indices) for row in rows)) for name, rows in table.groups),
        caption=table.caption,
    )
