"""Axes as all plots have them, and labels that stand beside their points instead of in a legend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from specbench.render.plots.identity import Look
from specbench.render.plots.palette import GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_PT = 8.25
"""11 CSS pixels."""
LABEL_IN = 0.165
"""Height of one label in a margin."""
ROW_IN = 0.23
"""Height of one row of a plot whose rows are named."""


class Place(Struct, frozen=True, kw_only=True):
    """Where in a figure its axes lie; inches from each edge."""

    left_in: float = 0.62
    right_in: float = 0.2
    bottom_in: float = 0.52
    top_in: float = 0.42


class Tag(Struct, frozen=True, kw_only=True):
    """A label and the point that it names, in data coordinates."""

    x: float
    y: float
    look: Look


def axes_in(figure: "Figure", place: Place) -> "Axes":
    """Quiet axes: a grid behind, no box."""
    width_in, height_in = figure.get_size_inches()
    axes = figure.add_axes(
        (
            place.left_in / width_in,
            place.bottom_in / height_in,
            (width_in - place.left_in - place.right_in) / width_in,
            (height_in - place.bottom_in - place.top_in) / height_in,
        )
    )
    quiet(axes)
    return axes


def quiet(axes: "Axes") -> None:
    """The house's look."""
    axes.set_facecolor(PAPER)
    axes.grid(visible=True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(MUTED)
        spine.set_linewidth(0.8)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=FONT_PT, length=3, width=0.8)
    axes.minorticks_off()


def name_axes(axes: "Axes", across: str, up: str = "") -> None:
    """Both with their unit."""
    axes.set_xlabel(across, fontsize=FONT_PT, color=MUTED)
    axes.set_ylabel(up, fontsize=FONT_PT, color=MUTED)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places in 0 … 1, each at least `gap` from the next, in the order wanted and together as near to it as can be.

    Where they don't fit they stand at equal distances.
    """
    gap = min(gap, 1 / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    # Less its rank's gap, each place may only grow: runs of equal values are pooled to their mean.
    pools: list[list[float]] = []
    for rank, index in enumerate(order):
        pools.append([wanted[index] - rank * gap])
        while len(pools) > 1 and _mean(pools[-2]) >= _mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    flat = [_mean(pool) for pool in pools for _ in pool]
    room = 1 - gap * (len(wanted) - 1)
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = min(max(flat[rank], 0.0), room) + rank * gap
    return placed


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def tag_in_margin(axes: "Axes", tags: Sequence[Tag]) -> None:
    """Each name in the right margin at its point's height, pushed apart, tied to the point by a thin line.

    Limits and scales of the axes must be set before.
    """
    height_in = axes.get_window_extent().height / axes.figure.dpi
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = [min(1.0, max(0.0, float(to_axes.transform((tag.x, tag.y))[1]))) for tag in tags]
    for tag, up in zip(tags, spread(wanted, LABEL_IN / height_in), strict=True):
        axes.annotate(
            "",
            xy=(tag.x, tag.y),
            xytext=(1.045, up),
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": tag.look.color,
                "linewidth": 0.6,
                "alpha": 0.5,
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )
        mark(axes, 1.06, up, tag.look)
        axes.text(1.082, up, tag.look.label, transform=axes.transAxes, va="center", color=tag.look.color, fontsize=FONT_PT)


def mark(axes: "Axes", across: float, up: float, look: Look) -> None:
    """The marker of a variant, in fractions of the axes."""
    axes.plot(
        [across],
        [up],
        marker=look.marker,
        color=look.color,
        markerfacecolor=look.fill,
        markersize=4.5,
        transform=axes.transAxes,
        clip_on=False,
    )


def rows_in(figure: "Figure", place: Place, looks: Sequence[Look], *, named: bool = True) -> "Axes":
    """Axes with a named row each, the first on top, at y = 0, 1, 2, …; every second row has a ground."""
    axes = axes_in(figure, place)
    axes.set_ylim(len(looks) - 0.5, -0.5)
    axes.set_yticks(range(len(looks)))
    axes.set_yticklabels([one.label for one in looks] if named else [])
    axes.tick_params(axis="y", length=0)
    for text, one in zip(axes.get_yticklabels(), looks, strict=False):
        text.set_color(one.color)
    axes.grid(visible=False, axis="y")
    for row in range(1, len(looks), 2):
        axes.axhspan(row - 0.5, row + 0.5, color=GRID, alpha=0.35, linewidth=0, zorder=0)
    return axes


def rows_height_in(row_count: int) -> float:
    """Of a figure of so many rows."""
    return 1.0 + ROW_IN * max(row_count, 2)


LOG_FROM_RATIO = 12
"""Between the smallest and the largest value; from there on an axis is logarithmic."""


def fit_range(axes: "Axes", which: str, values: Sequence[float]) -> None:
    """An axis, `x` or `y`, from 0; logarithmic where values are far apart; without ticks where there are none."""
    if not values:
        axes.tick_params(axis="x" if which == "x" else "y", labelbottom=False, labelleft=False)
        return
    lowest, highest = min(values), max(values)
    limits = axes.set_xlim if which == "x" else axes.set_ylim
    if lowest > 0 and highest / lowest >= LOG_FROM_RATIO:
        _logarithmic(axes, which)
        limits(lowest / 1.2, highest * 1.2)
    else:
        limits(0, highest * 1.06 or 1)


def _logarithmic(axes: "Axes", which: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="minor", length=0)
