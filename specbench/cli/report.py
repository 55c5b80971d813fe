"""Print the tables of a stored run again, from disk alone: no engine, no GPU, no network.

Exit codes: 0, or 2 when the folder is no result.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

PIPED_COLUMNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("folder", metavar="DIR", help="a run's folder, such as results/quickstart-20261129-153647")
    parser.add_argument(
        "--format", choices=("terminal", "markdown", "json"), default="terminal", help="what to print (default: terminal)"
    )
    parser.add_argument("--all", action="store_true", help="every cell, also where the overview would stand for them")


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises StoreError when the folder is no result."""
    from specbench.analysis import Judgement
    from specbench.analysis.judge import judge_run
    from specbench.render import json_report, markdown, terminal
    from specbench.store import read_run

    judgement: Judgement = judge_run(read_run(_run_folder(Path(args.folder))))
    if args.format == "markdown":
        print(markdown.render(judgement), end="")
    elif args.format == "json":
        print(json_report.render(judgement), end="")
    else:
        on_terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if on_terminal else PIPED_COLUMNS
        print(terminal.render(judgement, columns, color=on_terminal, all_cells=args.all), end="")
    return 0


def _run_folder(folder: Path) -> Path:
    """The folder as given. Raises StoreError naming the newest run when it only holds runs."""
    from specbench.errors import StoreError

    if folder.is_dir() and not (folder / "run.json").is_file():
        runs = sorted((one.parent for one in folder.glob("*/run.json")), key=_stamp)
        if runs:
            count = "a run" if len(runs) == 1 else f"{len(runs)} runs"
            raise StoreError(f"{folder} is no run but holds {count}; the newest is {runs[-1]}")
    return folder


def _stamp(folder: Path) -> tuple[str, str]:
    """The moment in a run's name; a clone or a copy would change the time of its files."""
    found = re.findall(r"\d{8}-\d{6}", folder.name)
    return (found[-1] if found else "", folder.name)
