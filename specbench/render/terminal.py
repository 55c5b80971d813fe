"""A judgement for a terminal or a pipe: no colour unless asked for, no figure ever cut."""

import textwrap
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from specbench.analysis import Judgement
from specbench.render import overview, prose, tables, words
from specbench.render.paper import written
from specbench.render.tables import Column, Table

MANY_CELLS = 40
"""With more cells than this the overview stands in place of the cells, unless all are asked for."""

STYLES = {
    "healthy": "green",
    "slower": "red",
    "dead drafter": "bold red",
    "failed": "bold red",
    "not speculating": "bold red",
    "not comparable": "yellow",
    "partial": "yellow",
    "capped": "yellow",
    "graphs off": "yellow",
    "mixed graphs": "yellow",
    "error": "bold red",
    "warning": "yellow",
}


def render(judgement: Judgement, width: int = 100, color: bool = False, all_cells: bool = False) -> str:
    """`width` in characters; a table that can't be split to fit is wider."""
    return written(_parts(judgement, width, all_cells), color)


def _parts(judgement: Judgement, width: int, all_cells: bool) -> Iterable[Text | Group]:
    yield _heading(judgement, width)
    shown = list(_tables(judgement, width, all_cells))
    for table in shown:
        for part in tables.fit(table, width):
            yield _drawn(part)
    legend = tables.legend(column for table in shown for column in table.columns)
    none_failed = ("no request failed",) if words.no_request_failed(judgement) else ()
    yield _lines((*legend, *tables.interval_legend(judgement), *none_failed), width, "dim")
    if not all_cells and _many(judgement):
        yield _lines(
            [f"All {len(judgement.summaries)} cells: specbench report {words.clean(judgement.run_folder)} --all"], width
        )
    yield _sentences(judgement, width)
    if parts := prose.acceptance(judgement):
        yield _acceptance(parts, judgement, width)
    if judgement.findings:
        yield _findings(judgement, width)


def _heading(judgement: Judgement, width: int) -> Text:
    text = Text(prose.title(judgement), style="bold")
    stamp = words.banner(judgement.simulated, judgement.rehearsal)
    if stamp:
        text.append("\n").append(_lines([stamp], width, "bold yellow"))
    text.append("\n").append(_lines([prose.circumstances(judgement)], width, "not bold"))
    for note in judgement.notes:
        text.append("\n").append(_lines([words.clean(note)], width, "yellow"))
    return text


def _many(judgement: Judgement) -> bool:
    return len(judgement.summaries) > MANY_CELLS and bool(judgement.overview)


def _tables(judgement: Judgement, width: int, all_cells: bool) -> Iterable[Table]:
    if not judgement.summaries:
        return
    if _many(judgement):
        yield overview.by_concurrency(judgement)
        yield overview.speedup_matrix(judgement)
    if all_cells or not _many(judgement):
        yield from _whole_or_two(judgement, width)


def _whole_or_two(judgement: Judgement, width: int) -> Iterable[Table]:
    """One table where it fits, else speed and latency apart."""
    title = "Results by workload and streams"
    whole = tables.by_level(judgement, judgement.summaries, _shown(tables.FIGURES, judgement), title)
    if len(tables.fit(whole, width)) == 1:
        yield whole
        return
    yield tables.by_level(judgement, judgement.summaries, _shown(tables.SPEED, judgement), title)
    yield tables.by_level(judgement, judgement.summaries, _shown(tables.LATENCY, judgement), f"{title}: latency")


def _shown(columns: Iterable[Column], judgement: Judgement) -> tuple[Column, ...]:
    """Without columns that say the same in every row; a line under the table says it once."""
    telling = tables.telling(columns, judgement.summaries)
    return tuple(column for column in telling if column is not tables.FAILED or _any_failed(judgement))


def _any_failed(judgement: Judgement) -> bool:
    return any(row.failed_count for row in judgement.summaries)


def _drawn(table: Table) -> Group:
    drawn = RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in table.columns:
        drawn.add_column(Text("\n".join(column.short)), justify="right" if column.numeric else "left", no_wrap=True)
    for name, rows in table.groups:
        if name:
            drawn.add_section()
            drawn.add_row(Text(name, style="bold"))
        for row in rows:
            drawn.add_row(*_cells(table.columns, row, indent=bool(name)))
    return Group(Text(table.title, style="bold"), drawn)


def _cells(columns: Sequence[Column], row: Sequence[str], indent: bool) -> Iterable[Text]:
    for column, text in zip(columns, row, strict=True):
        name = "  " + text if indent and column is tables.VARIANT else text
        yield Text(name, style=STYLES.get(text, "") if column.heading == tables.VERDICT.heading else "")


def _sentences(judgement: Judgement, width: int) -> Text:
    text = Text(tables.stamped("Variant by variant", judgement), style="bold")
    for variant, sentence in prose.sentences(judgement):
        text.append("\n").append(_lines([f"{variant}: {sentence}"], width, "not bold"))
    return text


def _acceptance(parts: Sequence[tuple[str, str]], judgement: Judgement, width: int) -> Text:
    text = Text(tables.stamped("Acceptance taken apart: share by draft position, AL otherwise", judgement), style="bold")
    for variant, told in parts:
        text.append("\n").append(_lines([f"{variant}: {told}"], width, "not bold"))
    return text


def _findings(judgement: Judgement, width: int) -> Text:
    text = Text("Findings", style="bold")
    for remark in prose.remarks(judgement.findings):
        head = f"{remark.severity} {remark.code}" + (f": {', '.join(remark.variants)}" if remark.variants else "")
        lines = _lines([head], width, "not bold")
        lines.stylize(STYLES.get(remark.severity, ""), 0, len(remark.severity))
        text.append("\n").append(lines)
        seen = [f"Seen: {one}" for one in remark.evidence[:1]] + list(remark.evidence[1:])
        remedy = [f"Do: {remark.remedy}"] if remark.remedy else []
        text.append("\n").append(_lines([remark.message, *seen, *remedy], width, "not bold", indent="  "))
    return text


def _lines(paragraphs: Iterable[str], width: int, style: str = "", indent: str = "") -> Text:
    """Wrapped by words; what follows the first line hangs by two."""
    wrapped = [
        textwrap.fill(
            one,
            width,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for one in paragraphs
    ]
    return Text("\n".join(wrapped), style=style)
