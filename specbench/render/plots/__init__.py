"""Plots as values: what to draw, what it says in words, and the same figures as a table.

`specbench.render.plots.gallery` lists the plots of a dossier; `canvas` draws one as SVG and PNG, and is the only place that
needs matplotlib at hand.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_IN = 6.25
"""600 CSS pixels."""
WIDE_IN = 10.0


class Plot(Struct, frozen=True, kw_only=True):
    """One figure. Texts are plain, control characters stripped."""

    slug: str
    """Name of its files, and of its anchor in a page: letters, digits and dashes."""
    section: str
    title: str
    """Stands above the axes, so that a file alone says what it is."""
    description: str
    """How to read it; the same for all of its kind."""
    remark: str = ""
    """What this one says."""
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The figures that are drawn, as a table."""
    width_in: float = WIDTH_IN
    height_in: float = 3.6
    draw: "Callable[[Figure], None]"

    @property
    def in_words(self) -> str:
        """For those who can't see it."""
        return f"{self.description} {self.remark}".strip()


class Drawing(Struct, frozen=True, kw_only=True):
    """A plot as files."""

    plot: Plot
    svg: str
    """Stands alone, in the light palette, with its title and description inside."""
    png: bytes
