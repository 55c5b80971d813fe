"""Print the tables of a stored run again and write its page, from disk alone: no engine, no GPU, no network.

Exit codes: 0, or 2 when the folder is no result.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specbench.units import counted

if TYPE_CHECKING:
    from specbench.analysis import Judgement
    from specbench.store import StoredRun

PIPED_COLUMNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("folder", metavar="DIR", help="a run's folder, such as results/quickstart-20261129-153647")
    parser.add_argument(
        "--format", choices=("terminal", "markdown", "json"), default="terminal", help="what to print (default: terminal)"
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write the page there, its plots beside it (default with the terminal: DIR/report.html)",
    )
    parser.add_argument("--no-html", action="store_true", help="no page and no plots")
    parser.add_argument("--all", action="store_true", help="every cell, also where the overview would stand for them")


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises StoreError when the folder is no result."""
    from specbench.analysis.judge import judge_run
    from specbench.errors import SpecbenchError
    from specbench.render import json_report, markdown, terminal
    from specbench.store import read_run

    if args.html and args.no_html:
        raise SpecbenchError("--html and --no-html exclude each other")
    stored = read_run(run_folder(Path(args.folder)))
    judgement = judge_run(stored)
    if args.format == "markdown":
        print(markdown.render(judgement), end="")
    elif args.format == "json":
        print(json_report.render(judgement), end="")
    else:
        on_terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if on_terminal else PIPED_COLUMNS
        print(terminal.render(judgement, columns, color=on_terminal, all_cells=args.all), end="")
    if not args.no_html and (args.html or args.format == "terminal"):
        sys.stdout.flush()
        _tell_page(stored, judgement, args.html)
    return 0


def _tell_page(stored: "StoredRun", judgement: "Judgement", asked: str | None) -> None:
    """Writes the page and says where. One that nobody asked for may fail, in a folder that can't be written to."""
    from specbench.cli.page import PAGE_FILE, PLOTS_FOLDER, write_page
    from specbench.errors import StoreError

    page = Path(asked) if asked else Path(stored.folder) / PAGE_FILE
    try:
        plot_count = write_page(stored, judgement, page)
    except StoreError as error:
        if asked:
            raise
        print(f"specbench: no page was written: {error}", file=sys.stderr)
        return
    out = sys.stderr if asked else sys.stdout  # what is printed for a program stays whole
    plots = f", its {counted(plot_count, 'plot')} as PNG and SVG in {page.parent / PLOTS_FOLDER}" if plot_count else ""
    print(f"{'' if asked else chr(10)}page: {page}{plots}", file=out)


def run_folder(folder: Path) -> Path:
    """The folder as given. Raises StoreError naming the newest run when it only holds runs."""
    from specbench.errors import StoreError

    if folder.is_dir() and not (folder / "run.json").is_file():
        runs = sorted((one.parent for one in folder.glob("*/run.json")), key=_stamp)
        if runs:
            count = counted(len(runs), "run")
            raise StoreError(f"{folder} is no run but holds {count}; the newest is {runs[-1]}")
    return folder


def _stamp(folder: Path) -> tuple[str, str]:
    """The moment in a run's name; a clone or a copy would change the time of its files."""
    found = re.findall(r"\d{8}-\d{6}", folder.name)
    return (found[-1] if found else "", folder.name)
