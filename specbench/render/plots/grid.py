"""A table whose fields are shaded by what they hold: readable where twenty lines would lie on each other."""

from typing import TYPE_CHECKING

from msgspec import Struct

from specbench.render.plots import WIDE_IN, WIDTH_IN
from specbench.render.plots.axes import FONT_PT, ROW_IN, Place, rows_in
from specbench.render.plots.identity import Looks, look, short
from specbench.render.plots.palette import HEAT, HEAT_INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT_IN = 1.9
SLANTED_FROM_COUNT = 7
"""Columns, from which on their names are slanted unless they are short."""
COLUMNS_COUNT = 18
"""Drawn, at most: a figure can't be wider than the page."""


class Field(Struct, frozen=True, kw_only=True):
    """What decides its shade, and what stands in it."""

    level: float
    text: str


class Grid(Struct, frozen=True, kw_only=True):
    """Variants × columns; a field may be missing."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    fields: dict[tuple[str, str], Field]


def width_in(grid: Grid) -> float:
    """Of its figure."""
    return WIDTH_IN if LEFT_IN + 0.2 + 0.45 * len(grid.columns) <= WIDTH_IN else WIDE_IN


def height_in(grid: Grid) -> float:
    """Of its figure."""
    return 1.1 + ROW_IN * max(2, len(grid.rows))


def draw_grid(figure: "Figure", grid: Grid, looks: Looks) -> None:
    """Shades run from the lowest field to the highest."""
    from matplotlib.patches import Rectangle

    columns = grid.columns[:COLUMNS_COUNT]
    shown = [look(looks, name) for name in grid.rows]
    axes = rows_in(figure, Place(left_in=LEFT_IN, right_in=0.15, bottom_in=0.1, top_in=0.85), shown)
    _head(axes, columns)
    levels = [one.level for one in grid.fields.values()]
    span = (max(levels) - min(levels)) or 1.0
    for (row, column), one in grid.fields.items():
        if column in columns:
            place = (columns.index(column), grid.rows.index(row))
            shade = min(len(HEAT) - 1, int(len(HEAT) * (one.level - min(levels)) / span))
            axes.add_patch(Rectangle((place[0] - 0.48, place[1] - 0.46), 0.96, 0.92, color=HEAT[shade], linewidth=0))
            axes.text(*place, one.text, ha="center", va="center", fontsize=FONT_PT, color=HEAT_INK[shade])


def _head(axes: "Axes", columns: tuple[str, ...]) -> None:
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(columns)), [short(name, 12) for name in columns])
    if len(columns) >= SLANTED_FROM_COUNT and max(map(len, columns)) > 5:
        for text in axes.get_xticklabels():
            text.set(rotation=22, ha="left")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
