"""Acceptance length against the acceptance length at which a variant would match the baseline."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from specbench.analysis import Judgement, Summary
from specbench.render import words
from specbench.render.plots import Plot
from specbench.render.plots.axes import FONT_PT, LABEL_IN, Place, Tag, axes_in, name_axes, tag_in_margin
from specbench.render.plots.identity import Looks, look
from specbench.render.plots.palette import GAIN, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ISO_RATIOS = (0.5, 2.0)
"""Further lines of equal speed-up."""


def plots(judgement: Judgement, looks: Looks, stamp: str) -> Iterator[Plot]:
    """One a concurrency with all workloads pooled; where there is no such overview, one a level."""
    source = judgement.overview or judgement.summaries
    rows = [row for row in source if row.break_even_length is not None and row.accept_length is not None]
    levels = dict.fromkeys((row.workload, row.concurrency) for row in rows)
    for index, (workload, concurrency) in enumerate(levels):
        here = [row for row in rows if (row.workload, row.concurrency) == (workload, concurrency)]
        where = words.place("all workloads" if workload == "all" else workload, concurrency)
        yield _plot(f"break-even-{index + 1}", f"Break-even · {where}{stamp}", here, looks)


def _plot(slug: str, title: str, rows: Sequence[Summary], looks: Looks) -> Plot:
    gaining = [words.clean(row.variant) for row in rows if (row.accept_length or 0) > (row.break_even_length or 0)]
    return Plot(
        slug=slug,
        section="break-even",
        title=title,
        description="Across: tokens accepted a verify step (AL). Up: the AL that this variant needs to be as fast as the "
        "baseline, the price of its steps (AL*). Below the line speculation pays, above it loses. "
        + (f"Paying here: {', '.join(gaining)}." if gaining else "None pays here."),
        headings=("variant", "AL", "break-even AL*", "speed-up ×"),
        rows=tuple(
            (
                words.clean(row.variant),
                words.accept_length(row),
                words.length(row.break_even_length),
                words.times(row.speedup_ratio),
            )
            for row in rows
        ),
        height_in=max(4.1, 1.1 + LABEL_IN * len(rows)),
        draw=lambda figure: _draw(figure, rows, looks),
    )


def _draw(figure: "Figure", rows: Sequence[Summary], looks: Looks) -> None:
    axes = axes_in(figure, Place(right_in=2.0))
    across = [row.accept_length or 1.0 for row in rows]
    up = [row.break_even_length or 1.0 for row in rows]
    right, top = max(2.0, *across) * 1.08, max(2.0, *up) * 1.08
    left, bottom = min(0.9, min(across) * 0.95), min(0.9, min(up) * 0.9)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.fill_between([left, right], [bottom, bottom], [left, right], color=GAIN, linewidth=0, zorder=0)
    for ratio in ISO_RATIOS:
        axes.plot([left, right], [left / ratio, right / ratio], color=MUTED, linewidth=0.9, linestyle=":")
        _name_line(figure, ratio, (left, right), (bottom, top))
    axes.plot([left, right], [left, right], color=INK, linewidth=1.6)
    _name_line(figure, 1.0, (left, right), (bottom, top))
    tags = []
    for row, x, y in zip(rows, across, up, strict=True):
        shown = look(looks, row.variant)
        axes.plot([x], [y], color=shown.color, marker=shown.marker, markersize=7, markerfacecolor=shown.fill, linestyle="")
        tags.append(Tag(x=x, y=y, look=shown))
    name_axes(axes, "AL: tokens accepted a verify step", "AL*: needed to match the baseline")
    tag_in_margin(axes, tags)


def _name_line(figure: "Figure", ratio: float, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Along its lower end, where points are rare."""
    axes = figure.axes[0]
    begin, end = max(across[0], up[0] * ratio), min(across[1], up[1] * ratio)
    if end <= begin:
        return
    x = begin + 0.06 * (end - begin)
    (left, bottom), (right, top) = axes.transData.transform([(begin, begin / ratio), (end, end / ratio)])
    axes.annotate(
        "speed-up = 1" if ratio == 1 else f"{ratio:g}×",
        (x, x / ratio),
        (0, 4),
        textcoords="offset points",
        ha="left",
        va="bottom",
        rotation=math.degrees(math.atan2(top - bottom, right - left)),
        rotation_mode="anchor",
        fontsize=FONT_PT,
        color=INK if ratio == 1 else MUTED,
    )
