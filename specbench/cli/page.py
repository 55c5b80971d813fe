"""Writes a run's page, and its plots as files beside it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specbench.analysis import Judgement
    from specbench.store import StoredRun

PAGE_FILE = "report.html"
PLOTS_FOLDER = "plots"


def write_page(stored: "StoredRun", judgement: "Judgement", page: Path) -> int:
    """The number of plots. Raises StoreError where something can't be written."""
    from specbench.analysis.dossier import dossier_of
    from specbench.errors import StoreError
    from specbench.render.html import report
    from specbench.render.plots.canvas import drawn
    from specbench.render.plots.gallery import plots_of
    from specbench.store import replace_file

    dossier = dossier_of(stored, judgement)
    drawings = list(drawn(plots_of(dossier)))
    folder = page.parent / PLOTS_FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: can't be made: {error.strerror}") from None
    for one in drawings:
        replace_file(folder / f"{one.plot.slug}.svg", one.svg.encode())
        replace_file(folder / f"{one.plot.slug}.png", one.png)
    replace_file(page, report.render(dossier, drawings).encode())
    return len(drawings)
