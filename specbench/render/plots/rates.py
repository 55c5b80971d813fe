"""tok/s against concurrency, of all streams together and as one user sees it."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from specbench.analysis import Judgement, Summary
from specbench.render import words
from specbench.render.plots import Plot
from specbench.render.plots.axes import (
    LABEL_IN,
    Place,
    Tag,
    axes_in,
    fit_range,
    name_axes,
    rows_height_in,
    rows_in,
    tag_in_margin,
)
from specbench.render.plots.identity import Looks, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rate = Callable[[Summary], float | None]
MEANINGS: tuple[tuple[str, str, Rate, str], ...] = (
    ("output-rate", "Output tok/s", lambda row: row.output_tps, "output tokens a second, all streams together"),
    ("user-rate", "tok/s per user", lambda row: row.per_user_tps, "tokens a second that one user sees, 1 / TPOT p50"),
)


def plots(judgement: Judgement, looks: Looks, stamp: str) -> Iterator[Plot]:
    """Two a workload. A workload of one level is drawn as rows: there is no line to follow."""
    for index, workload in enumerate(dict.fromkeys(row.workload for row in judgement.summaries)):
        rows = [row for row in judgement.summaries if row.workload == workload]
        for slug, heading, rate, meaning in MEANINGS:
            told = [row for row in rows if rate(row) is not None]
            if told:
                yield _plot(
                    f"{slug}-{index + 1}", f"{heading} · {words.clean(workload)}{stamp}", told, (rate, meaning), looks
                )


def _plot(slug: str, title: str, rows: Sequence[Summary], told: tuple[Rate, str], looks: Looks) -> Plot:
    rate, meaning = told
    levels = sorted({row.concurrency for row in rows})
    variants = list(dict.fromkeys(row.variant for row in rows))
    cells = {(row.variant, row.concurrency): words.rate(rate(row)) for row in rows}
    best = max(rows, key=lambda row: rate(row) or 0.0)
    several = len(levels) > 1
    return Plot(
        slug=slug,
        section="speed",
        title=title,
        description=f"Higher is better: {meaning}{', against streams held at once' if several else ''}.",
        remark=f"Highest: {words.clean(best.variant)} with {words.rate(rate(best))} ({words.streams(best.concurrency)}).",
        headings=("variant", *(words.streams(level) for level in levels)),
        rows=tuple((words.clean(name), *(cells.get((name, level), words.NOTHING) for level in levels)) for name in variants),
        height_in=max(3.6, 1.1 + LABEL_IN * len(variants)) if several else rows_height_in(len(variants)),
        draw=(lambda figure: _lines(figure, rows, rate, looks))
        if several
        else (lambda figure: _dots(figure, rows, rate, looks)),
    )


def _lines(figure: "Figure", rows: Sequence[Summary], rate: Rate, looks: Looks) -> None:
    axes = axes_in(figure, Place(right_in=2.0))
    levels = sorted({row.concurrency for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(levels, [words.streams_count(level) for level in levels])
    axes.minorticks_off()
    axes.set_xlim(levels[0] / 1.12, levels[-1] * 1.12)
    fit_range(axes, "y", [rate(row) or 0.0 for row in rows])
    tags = []
    for name in dict.fromkeys(row.variant for row in rows):
        points = sorted((row.concurrency, rate(row) or 0.0) for row in rows if row.variant == name)
        shown = look(looks, name)
        axes.plot(
            *zip(*points, strict=True),
            color=shown.color,
            marker=shown.marker,
            markerfacecolor=shown.fill,
            linestyle=shown.dashes,
            linewidth=shown.weight,
            markersize=4.5,
        )
        tags.append(Tag(x=points[-1][0], y=points[-1][1], look=shown))
    name_axes(axes, "streams held at once", "tok/s")
    tag_in_margin(axes, tags)


def _dots(figure: "Figure", rows: Sequence[Summary], rate: Rate, looks: Looks) -> None:
    shown = [look(looks, row.variant) for row in rows]
    axes = rows_in(figure, Place(left_in=1.9, right_in=0.7), shown)
    highest = max(rate(row) or 0.0 for row in rows)
    axes.set_xlim(0, highest * 1.08 or 1)
    for place, (row, one) in enumerate(zip(rows, shown, strict=True)):
        value = rate(row) or 0.0
        axes.plot([0, value], [place, place], color=one.color, linewidth=1.2, linestyle=one.dashes)
        axes.plot([value], [place], color=one.color, marker=one.marker, markerfacecolor=one.fill, markersize=6)
        axes.annotate(
            words.rate(rate(row)),
            (value, place),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.25,
            color=one.color,
            annotation_clip=False,
        )
    name_axes(axes, "tok/s")
