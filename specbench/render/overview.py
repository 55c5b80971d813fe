"""Many cells at one glance: a row a variant, levels side by side."""

from collections.abc import Mapping, Sequence

from specbench.analysis import Judgement, Summary
from specbench.render import words
from specbench.render.tables import VARIANT, Column, Table, stamped, texts

Cells = Mapping[tuple[str, str, int], Summary]
"""By variant, workload and concurrency."""


def by_concurrency(judgement: Judgement) -> Table:
    """All workloads pooled: tok/s per user, speed-up and AL at each concurrency, and the variant's verdict."""
    cells = _cells(judgement.overview)
    levels = dict.fromkeys((row.workload, row.concurrency) for row in judgement.overview)
    columns = [column for level in levels for column in _trio(cells, *level)]
    verdict = Column(
        heading="verdict", short=("", "verdict"), of=lambda row: _verdict(judgement, row.variant), numeric=False
    )
    streams = ", ".join(words.streams_count(concurrency) for _, concurrency in levels)
    title = (
        f"Overview, all workloads pooled: tok/s per user, speed-up ×, AL at {streams} stream{'' if streams == '1' else 's'}"
    )
    return _table(judgement, title, judgement.overview, [VARIANT, *columns, verdict])


def speedup_matrix(judgement: Judgement) -> Table:
    """Every speed-up, a column a level."""
    cells = _cells(judgement.summaries)
    levels = dict.fromkeys((row.workload, row.concurrency) for row in judgement.summaries)
    columns = [_matrix_column(cells, *level) for level in levels]
    return _table(judgement, "Speed-up (×) by workload and streams", judgement.summaries, [VARIANT, *columns])


def _verdict(judgement: Judgement, variant: str) -> str:
    """The variant's first word; where it is slower at some levels only, at how many."""
    code = next((code for one in judgement.verdicts if one.variant == variant for code in one.verdicts), "unknown")
    found = [row.verdict for row in judgement.summaries if row.variant == variant]
    some = f" at {found.count(code)}/{len(found)}" if code == "slower_than_baseline" else ""
    return words.verdict(code) + (some if found.count(code) < len(found) else "")


def _cells(rows: Sequence[Summary]) -> Cells:
    return {(row.variant, row.workload, row.concurrency): row for row in rows}


def _table(judgement: Judgement, title: str, rows: Sequence[Summary], columns: Sequence[Column]) -> Table:
    firsts = tuple({row.variant: row for row in rows}.values())
    return Table(title=stamped(title, judgement), columns=tuple(columns), groups=(("", texts(firsts, columns)),))


def _trio(cells: Cells, workload: str, concurrency: int) -> tuple[Column, ...]:
    streams, at_count = words.streams(concurrency), f"at {words.streams_count(concurrency)}"

    def column(name: str, short: tuple[str, str], text: Mapping[str, str]) -> Column:
        return Column(heading=f"{name} at {streams}", short=short, of=lambda row: text[row.variant])

    rows = [row for row in cells.values() if (row.workload, row.concurrency) == (workload, concurrency)]
    return (
        column("tok/s per user", (at_count, "/user"), {row.variant: words.rate(row.per_user_tps) for row in rows}),
        column("speed-up (×)", ("", "×"), {row.variant: words.times(row.speedup_ratio) for row in rows}),
        column("AL", ("", "AL"), {row.variant: words.accept_length(row) for row in rows}),
    )


def _matrix_column(cells: Cells, workload: str, concurrency: int) -> Column:
    return Column(
        heading=f"{words.clean(workload)} at {words.streams_count(concurrency)}",
        short=(words.clean(workload), f"at {words.streams_count(concurrency)}"),
        of=lambda row: matrix_cell(cells[row.variant, workload, concurrency]),
    )


def matrix_cell(row: Summary) -> str:
    """The speed-up; a word where there can be none."""
    return "failed" if row.verdict == "failed" else words.times(row.speedup_ratio)
