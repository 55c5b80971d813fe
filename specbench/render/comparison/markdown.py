"""A comparison as GitHub Markdown: for a pull request, or a job's summary."""

from collections.abc import Iterable, Sequence

from specbench.analysis.comparing import Comparison, VariantComparison
from specbench.render import words
from specbench.render.comparison import words as said
from specbench.render.markdown import escape

SIGNS = {"pass": "✅", "fail": "❌", "inconclusive": "❔", "refused": "⛔"}
LEFT = {"metric", "level", "changed?", "gate"}


def render(comparison: Comparison) -> str:
    """Ends with a line break."""
    return "\n\n".join(_blocks(comparison)) + "\n"


def _blocks(comparison: Comparison) -> Iterable[str]:
    sign = SIGNS[comparison.verdict]
    yield f"## {sign} {said.VERDICTS[comparison.verdict]} · {escape(said.title(comparison))}"
    stamp = words.banner(comparison.simulated, comparison.rehearsal)
    if stamp:
        yield f"> **{escape(stamp)}**"
    yield "\n".join(f"- {escape(one)}" for one in said.sides(comparison))
    for variant in said.ranked(comparison):
        yield f"{SIGNS[variant.verdict]} **{escape(said.headline(variant, comparison.margin_ratio))}**"
        if variant.refusals:
            yield "\n".join(f"- {escape(one)}" for one in said.refusals(variant))
        yield from _variant(comparison, variant)
    if any(one.answers for one in comparison.variants):
        yield "\n".join(f"- {escape(one)}" for one in said.legend(comparison))
    yield from (escape(words.clean(one)) for one in comparison.notes)


def _variant(comparison: Comparison, variant: VariantComparison) -> Iterable[str]:
    if not variant.answers:
        return
    lines = [said.circumstances(comparison, variant), *(f"under test: {one}" for one in said.under_test(variant))]
    yield "<br>\n".join(escape(one) for one in lines)
    yield _table(said.HEADINGS, [said.row(one) for one in variant.answers])
    rows = said.level_rows(variant)
    if len(rows) > 1:
        metrics = [said.label(one) for one in said.level_metrics(variant)]
        yield (
            "<details><summary>Change in % by level; no test, for orientation</summary>\n\n"
            f"{_table(('level', *metrics), rows)}\n\n</details>"
        )
    if variant.prompts:
        yield escape(said.diagnostic(variant.prompts))
    yield from (escape(words.clean(one)) for one in variant.notes)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = "|" + "|".join(" :--- " if one in LEFT else " ---: " for one in headings) + "|"
    return "\n".join([_row(headings), rule, *map(_row, rows)])


def _row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(escape(text) for text in texts) + " |"
