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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES_COUNT = 4
"""Named in the text, at most."""
ISO_RATIOS = (0.5, 2.0)
"""Further lines of equal speed-up."""


def plots(judgement: Judgement, looks: Looks, stamp: str) -> Iterator[Plot]:
    """One a concurrency with all workloads pooled; where there is no such overview, one a level."""
    source = judgement.overview or judgement.summaries
    rows = [row for row in source if _is_ranked(row)]
    levels = dict.fromkeys((row.workload, row.concurrency) for row in rows)
    for index, (workload, concurrency) in enumerate(levels):
        here = [row for row in rows if (row.workload, row.concurrency) == (workload, concurrency)]
        where = words.place("all workloads" if workload == "all" else workload, concurrency)
        yield _plot(f"break-even-{index + 1}", f"Break-even · {where}{stamp}", here, looks)


def _is_ranked(row: Summary) -> bool:
    """A synthetic arm has a price of its steps, but no acceptance of its own to set against it."""
    return row.break_even_length is not None and row.accept_length is not None and row.verdict != "synthetic"


def _plot(slug: str, title: str, rows: Sequence[Summary], looks: Looks) -> Plot:
    gaining = [words.clean(row.variant) for row in rows if (row.accept_length or 0) > (row.break_even_length or 0)]
    names = f": {', '.join(gaining)}" if len(gaining) <= NAMES_COUNT else ""
    return Plot(
        slug=slug,
        section="break-even",
        title=title,
        description="Across: tokens accepted a verify step (AL). Up: the AL that this variant needs to be as fast as the "
        "baseline, the price of its steps (AL*). Below the line speculation pays, above it loses.",
        remark=f"{len(gaining)} of {len(rows)} pay here{names}." if gaining else "None pays here.",
        headings=("variant", "AL", "break-even AL*", "speed-up ×", "efficiency"),
        rows=tuple(
            (
                words.clean(row.variant),
                words.accept_length(row),
                words.length(row.break_even_length),
                words.times(row.speedup_ratio),
                words.length(row.efficiency_ratio),
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
    points = list(zip(across, up, strict=True))
    for ratio in (*ISO_RATIOS, 1.0):
        color, width, dashes = (INK, 1.6, "-") if ratio == 1 else (MUTED, 0.9, ":")
        axes.plot([left, right], [left / ratio, right / ratio], color=color, linewidth=width, linestyle=dashes)
        _name_line(axes, ratio, (max(left, bottom * ratio), min(right, top * ratio)), points)
    tags = []
    for row, x, y in zip(rows, across, up, strict=True):
        shown = look(looks, row.variant)
        axes.plot([x], [y], color=shown.color, marker=shown.marker, markersize=7, markerfacecolor=shown.fill, linestyle="")
        tags.append(Tag(x=x, y=y, look=shown))
    name_axes(axes, "AL: tokens accepted a verify step", "AL*: needed to match the baseline")
    tag_in_margin(axes, tags)


def _name_line(axes: "Axes", ratio: float, span: tuple[float, float], points: Sequence[tuple[float, float]]) -> None:
    """Along the line, where it is farthest from the points. `span`: where the line crosses the axes."""
    begin, end = span
    if end <= begin:
        return
    seen = [axes.transData.transform(point) for point in points]
    (left, bottom), (right, top) = axes.transData.transform([(begin, begin / ratio), (end, end / ratio)])

    def room(share: float) -> float:
        x, y = left + share * (right - left), bottom + share * (top - bottom)
        return min(math.hypot(x - one[0], y - one[1]) for one in seen)

    share = max((0.08, 0.3, 0.5, 0.7), key=room)
    x = begin + share * (end - begin)
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
