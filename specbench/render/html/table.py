"""A table for a page; its headings sort it where scripts run."""

from collections.abc import Sequence

from specbench.render.html.markup import Content, Markup, element, joined


def table(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[Content]],
    *,
    numeric: Sequence[bool] = (),
    sortable: bool = False,
    row_headed: bool = True,
) -> Markup:
    """In a frame that scrolls by itself, so that a wide table never widens the page.

    `numeric`: which columns hold figures; all but the first where it is empty. `row_headed`: the first cell names its row.
    """
    kinds = list(numeric) or [place > 0 for place in range(len(headings))]
    head = element("thead", element("tr", *[_heading(*one, sortable) for one in zip(headings, kinds, strict=True)]))
    body = element("tbody", joined([_row(row, kinds, row_headed) for row in rows]))
    whole = element("table", element("caption", caption), head, body, class_="sortable" if sortable else None)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _heading(heading: str, is_numeric: bool, sortable: bool) -> Markup:
    inner = element("button", heading, type="button") if sortable else heading
    return element("th", inner, scope="col", class_="number" if is_numeric else None, aria_sort="none" if sortable else None)


def _row(row: Sequence[Content], kinds: Sequence[bool], row_headed: bool) -> Markup:
    cells = [
        element("th", one, scope="row")
        if place == 0 and row_headed
        else element("td", one, class_="number" if is_numeric else None)
        for place, (one, is_numeric) in enumerate(zip(row, kinds, strict=True))
    ]
    return element("tr", *cells)
