"""A plot to SVG and PNG. The same plot gives the same bytes, and matplotlib's own settings are left as they were."""

import io
import warnings
from collections.abc import Iterable, Iterator

from specbench.render.plots import Drawing, Plot
from specbench.render.plots.palette import INK, PAPER
from specbench.render.plots.svg import tidied

PNG_DPI = 160
TITLE_PT = 9.75


def drawn(plots: Iterable[Plot]) -> Iterator[Drawing]:
    """One after the other: a page of many plots needs little memory."""
    import matplotlib as mpl

    for plot in plots:
        with mpl.rc_context(), warnings.catch_warnings():
            # A name may hold signs that the font lacks; a box in their place is no fault of the plot.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            mpl.rcdefaults()
            mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": plot.slug, "text.parse_math": False})
            yield _drawn(plot)


def _drawn(plot: Plot) -> Drawing:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(plot.width_in, plot.height_in), facecolor=PAPER)
    FigureCanvasAgg(figure)
    plot.draw(figure)
    figure.text(
        0.012,
        1 - 0.12 / plot.height_in,
        plot.title,
        fontsize=TITLE_PT,
        fontweight="bold",
        color=INK,
        va="top",
    )
    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", facecolor=PAPER, metadata={"Date": None, "Creator": None})
    figure.savefig(png, format="png", dpi=PNG_DPI, facecolor=PAPER, metadata={"Software": None})
    return Drawing(plot=plot, svg=tidied(svg.getvalue(), plot), png=png.getvalue())
