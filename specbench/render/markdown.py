"""A judgement as GitHub Markdown, every cell of it."""

from collections.abc import Iterable, Sequence

from specbench.analysis import Judgement
from specbench.render import prose, tables, words
from specbench.render.tables import Column, Table


def render(judgement: Judgement) -> str:
    """Ends with a line break."""
    return "\n\n".join(_blocks(judgement)) + "\n"


def _blocks(judgement: Judgement) -> Iterable[str]:
    yield f"# {escape(prose.title(judgement))}"
    stamp = words.banner(judgement.simulated, judgement.rehearsal)
    if stamp:
        yield f"> **{escape(stamp)}**"
    yield escape(prose.circumstances(judgement))
    yield from (f"> {escape(words.clean(note))}" for note in judgement.notes)
    shown = tuple(_tables(judgement))
    for table in shown:
        yield f"## {escape(table.title)}"
        yield from _drawn(table)
    lines = tables.legend(column for table in shown for column in table.columns)
    yield "\n".join(f"- {escape(line)}" for line in (*lines, *tables.interval_legend(judgement)))
    yield f"## {tables.stamped('Variant by variant', judgement)}"
    yield "\n".join(f"- **{escape(variant)}**: {escape(sentence)}" for variant, sentence in prose.sentences(judgement))
    if parts := prose.acceptance(judgement):
        yield f"## {tables.stamped('Acceptance taken apart: share by draft position, AL otherwise', judgement)}"
        yield "\n".join(f"- **{escape(variant)}**: {escape(told)}" for variant, told in parts)
    if judgement.findings:
        yield "## Findings"
        yield "\n".join(_finding(remark) for remark in prose.remarks(judgement.findings))


def _tables(judgement: Judgement) -> Iterable[Table]:
    if judgement.overview:
        columns = tables.telling(tables.FIGURES, judgement.overview)
        yield tables.by_level(judgement, judgement.overview, columns, "Overview, all workloads pooled")
    columns = tables.telling(tables.EVERYTHING, judgement.summaries)
    yield tables.flat(judgement, columns, "Results by workload and concurrency")


def _drawn(table: Table) -> Iterable[str]:
    for name, rows in table.groups:
        if name:
            yield f"### {escape(name)}"
        yield "\n".join([_row([one.heading for one in table.columns]), _rule(table.columns), *map(_row, rows)])


def _row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(escape(text) for text in texts) + " |"


def _rule(columns: Sequence[Column]) -> str:
    return "|" + "|".join(" ---: " if column.numeric else " :--- " for column in columns) + "|"


def _finding(remark: prose.Remark) -> str:
    names = f" ({', '.join(remark.variants)})" if remark.variants else ""
    seen = f" Seen: {'; '.join(remark.evidence)}." if remark.evidence else ""
    remedy = f" Do: {remark.remedy}" if remark.remedy else ""
    return f"- **{remark.severity}** `{remark.code}`{escape(names)}: {escape(remark.message + seen + remedy)}"


def escape(text: str) -> str:
    """Nothing in it is markup or ends a cell of a table."""
    for sign in "\\`*_|[]<>~":
        text = text.replace(sign, f"&{'lt' if sign == '<' else 'gt'};" if sign in "<>" else "\\" + sign)
    return text
