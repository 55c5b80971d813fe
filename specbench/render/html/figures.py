"""A plot in a page: the picture, how to read it, and its figures as a table."""

from specbench.render.html.markup import Markup, element, text
from specbench.render.html.table import table
from specbench.render.plots import WIDTH_IN, Drawing


def figure(drawing: Drawing, explained: bool = False) -> Markup:
    """`explained`: how to read it was told before.

    The drawing's SVG is our own; all text in it came through an XML writer."""
    plot = drawing.plot
    wide = plot.width_in > WIDTH_IN
    picture = element(
        "div",
        Markup(drawing.svg.strip()),
        class_="plot scroll",
        tabindex="0",
        role="group",
        aria_label=f"{plot.title}, picture",
    )
    numbers = element(
        "details", element("summary", "Figures as a table"), table(plot.title, plot.headings, plot.rows), class_="figures"
    )
    caption = element("figcaption", text(plot.remark if explained else plot.in_words))
    return element("figure", picture, caption, numbers, id=plot.slug, class_="wide" if wide else None)
