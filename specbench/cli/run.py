"""Run a suite: launch each variant, drive the load, store what was seen, print the table.

Exit codes: 0 all went well, 1 a variant failed, 2 something is lacking (told before anything starts), 130 interrupted.
"""

import argparse
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specbench.cli.choice import chosen, launch_count, port_range, with_launches

if TYPE_CHECKING:
    from specbench.suite import Suite

PIPED_COLUMNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", help="the suite file, such as suites/quickstart.yaml")
    parser.add_argument("--out", metavar="DIR", default="results", help="where the run's folder is made (default: results)")
    parser.add_argument("--rehearse", action="store_true", help="simulated server, shrunk load; needs no GPU and no model")
    parser.add_argument("--full", action="store_true", help="with --rehearse: keep the whole load")
    parser.add_argument("--launches", metavar="N", type=launch_count, help="launches a variant, instead of the suite's")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the table")
    parser.add_argument("--no-check", action="store_true", help="launch variants in spite of the faults that `check` finds")
    parser.add_argument("--variant", metavar="NAME", nargs="+", default=[], help="only these variants")
    parser.add_argument("--ports", metavar="FROM-TO", type=port_range, help="ports that servers may take")


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError before anything starts."""
    from specbench.cli.suites import read_suite
    from specbench.errors import SpecbenchError
    from specbench.execution.runner import run_plan
    from specbench.execution.slots import PORTS
    from specbench.plan import make_plan, rehearse
    from specbench.preflight.suites import with_methods
    from specbench.render.live import progress
    from specbench.render.words import clean

    if args.full and not args.rehearse:
        raise SpecbenchError("--full belongs to --rehearse: a real run is always whole")
    suite = with_methods(read_suite(args.suite))
    refused = None if args.no_check else checked(suite, args.rehearse, args.variant)
    suite_text = Path(suite.path).read_text(encoding="utf-8")
    suite, rehearsal = rehearse(suite, args.full, args.launches or 1) if args.rehearse else (suite, None)
    suite = with_launches(suite, args.launches)
    plan = chosen(make_plan(suite), args.variant)
    with progress(sys.stderr, args.quiet, plan, rehearsal) as on_event:
        outcome = run_plan(plan, suite_text, Path(args.out), on_event, rehearsal, args.ports or PORTS, refused)
    show(outcome.folder)
    for sentence in outcome.failed:
        print(f"specbench: failed: {clean(sentence)}", file=sys.stderr)
    return outcome.exit_code


def checked(suite: "Suite", rehearsing: bool, names: Sequence[str]) -> Mapping[str, str]:
    """Tells what `check` finds about the chosen variants; by variant, why one must not be launched."""
    from specbench.cli.check import told
    from specbench.preflight.suites import examine

    examined = examine(suite, rehearsing)
    found = [one for one in examined.findings if one.variant is not None]  # what concerns all, the run itself tells
    findings = [one for one in found if not names or one.variant in names]
    for line in told(findings):
        print(line, file=sys.stderr)
    return examined.refused


def show(folder: Path) -> None:
    """Prints the table of a run's folder and writes its reports."""
    from specbench.analysis.judge import judge_run
    from specbench.render import json_report, markdown, terminal
    from specbench.store import read_run, replace_file

    judgement = judge_run(read_run(folder))
    replace_file(folder / "report.md", markdown.render(judgement).encode())
    replace_file(folder / "report.json", json_report.render(judgement).encode())
    on_terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if on_terminal else PIPED_COLUMNS
    print(terminal.render(judgement, columns, color=on_terminal))
    print(f"results: {folder}")
    print(f"as a page with plots: specbench report {shlex.quote(str(folder))}")
