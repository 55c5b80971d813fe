"""A comparison for a terminal or a pipe."""

import textwrap
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from specbench.analysis.comparing import Comparison, VariantComparison
from specbench.render import words
from specbench.render.comparison import words as said
from specbench.render.paper import written

STYLES = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow", "refused": "bold red"}


def render(comparison: Comparison, width: int = 100, color: bool = False) -> str:
    """`width` in characters; no figure is ever cut. Ends with a line break."""
    return written(_parts(comparison, width), color)


def _parts(comparison: Comparison, width: int) -> Iterable[Text | Group]:
    yield _heading(comparison, width)
    yield _verdict(comparison, width)
    for variant in comparison.variants:
        yield from _variant(comparison, variant, width)
    if any(one.answers for one in comparison.variants):
        yield _lines(said.legend(comparison), width, "dim")
    if comparison.notes:
        yield _lines([words.clean(one) for one in comparison.notes], width)


def _heading(comparison: Comparison, width: int) -> Text:
    text = Text(said.title(comparison), style="bold")
    stamp = words.banner(comparison.simulated, comparison.rehearsal)
    if stamp:
        text.append("\n").append(_lines([stamp], width, "bold yellow"))
    return text.append("\n").append(_lines(said.sides(comparison), width, "not bold"))


def _verdict(comparison: Comparison, width: int) -> Text:
    """The word, then a sentence a variant."""
    text = Text(said.VERDICTS[comparison.verdict], style=STYLES[comparison.verdict])
    for variant in said.ranked(comparison):
        text.append("\n").append(_lines([said.headline(variant, comparison.margin_ratio)], width, "not bold default"))
        if variant.refusals:
            text.append("\n").append(_lines(said.refusals(variant), width, "not bold default", indent="  - "))
    return text


def _variant(comparison: Comparison, variant: VariantComparison, width: int) -> Iterable[Text | Group]:
    if not variant.answers:
        return
    heading = Text(words.clean(variant.name), style="bold")
    heading.append(f" · {said.circumstances(comparison, variant)}", style="not bold")
    if variant.under_test:
        lines = [f"under test: {one}" for one in said.under_test(variant)]
        heading.append("\n").append(_lines(lines, width, "not bold"))
    yield Group(heading, _table(said.HEADINGS, [said.row(one) for one in variant.answers]))
    rows = said.level_rows(variant)
    if len(rows) > 1:
        metrics = [said.label(one) for one in said.level_metrics(variant)]
        title = Text(f"{words.clean(variant.name)}: change in % by level; no test, for orientation", style="bold")
        yield Group(title, _table(("level", *metrics), rows))
    remarks = [said.diagnostic(variant.prompts)] if variant.prompts else []
    remarks += [words.clean(one) for one in variant.notes]
    if remarks:
        yield _lines(remarks, width)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    wordy = {"metric", "level", "changed?", "gate"}
    for heading in headings:
        table.add_column(Text(heading), justify="left" if heading in wordy else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(text, style=_style(text)) for text in row))
    return table


def _style(text: str) -> str:
    if text in ("FAIL", "yes, worse"):
        return "red"
    if text in ("PASS", "yes, better"):
        return "green"
    return "yellow" if text.startswith("INCONCLUSIVE") else ""


def _lines(paragraphs: Iterable[str], width: int, style: str = "", indent: str = "") -> Text:
    """Wrapped by words; what follows the first line hangs."""
    hanging = " " * max(2, len(indent))
    wrapped = [
        textwrap.fill(
            one, width, initial_indent=indent, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
        )
        for one in paragraphs
    ]
    return Text("\n".join(wrapped), style=style)
