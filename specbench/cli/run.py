"""Run a suite: launch each variant, drive the load, store what was seen, print the table.

A run that was cut off goes on with --resume DIR, from what is stored there; SUITE is only needed where it held secrets.

Exit codes: 0 all went well, 1 a variant failed, 2 something is lacking (told before anything starts), 130 Ctrl-C,
143 SIGTERM, 129 SIGHUP.
"""

import argparse
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from specbench.cli.choice import chosen, launch_count, launched_by, port_range, with_launches
from specbench.cli.watching import add_watching, answers_to

if TYPE_CHECKING:
    from specbench.analysis import Judgement
    from specbench.execution.runner import Outcome
    from specbench.suite import Suite

PIPED_COLUMNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="the suite file, such as suites/quickstart.yaml")
    parser.add_argument("--out", metavar="DIR", help="where the run's folder is made (default: results)")
    add_load(parser)
    parser.add_argument("--resume", metavar="DIR", help="go on with this run: do the launches that are not whole")
    parser.add_argument("--redo-failed", action="store_true", help="with --resume: do launches that failed again too")


def add_load(parser: argparse.ArgumentParser) -> None:
    """What is launched, and how it is told of."""
    parser.add_argument("--rehearse", action="store_true", help="simulated server, shrunk load; needs no GPU and no model")
    parser.add_argument("--full", action="store_true", help="with --rehearse: keep the whole load")
    parser.add_argument("--launches", metavar="N", type=launch_count, help="launches a variant, instead of the suite's")
    parser.add_argument("--no-check", action="store_true", help="launch variants in spite of the faults that `check` finds")
    parser.add_argument("--variant", metavar="NAME", nargs="+", default=[], help="only these variants")
    parser.add_argument("--ports", metavar="FROM-TO", type=port_range, help="ports that servers may take")
    parser.add_argument("--launcher", choices=("local", "slurm"), help="where servers run, instead of as the suite says")
    add_watching(parser)


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError before anything starts."""
    from specbench.render.words import clean

    outcome = _resumed(args) if args.resume else _new(args)
    show(outcome.folder, answers_to(args))
    for sentence in outcome.failed:
        print(f"specbench: failed: {clean(sentence)}", file=sys.stderr)
    if outcome.interrupted_by:
        print(f"specbench: interrupted; go on with: {resume_words(args.suite, outcome.folder)}", file=sys.stderr)
    return outcome.exit_code


def resume_words(suite: str | None, folder: Path) -> str:
    """The command that goes on with a run. The suite is named where its stored form lacks the secrets."""
    from specbench.cli.resuming import has_hidden
    from specbench.store import read_run

    words = ["specbench", "run", *([suite] if suite and has_hidden(read_run(folder).run) else []), "--resume", str(folder)]
    return shlex.join(words)


def _new(args: argparse.Namespace) -> "Outcome":
    from specbench.cli.suites import read_suite
    from specbench.errors import SpecbenchError
    from specbench.preflight.suites import with_methods
    from specbench.suite import read_text

    if not args.suite:
        raise SpecbenchError("which suite? Give its file, such as suites/quickstart.yaml, or --resume DIR")
    if args.redo_failed:
        raise SpecbenchError("--redo-failed belongs to --resume DIR")
    text = read_text(args.suite)
    return launch(args, with_methods(read_suite(args.suite, text)), text, Path(args.out or "results"))


def launch(args: argparse.Namespace, suite: "Suite", text: str, results: Path) -> "Outcome":
    """Launches what `add_load` asks for; the folder is made in `results`. Raises SpecbenchError before anything starts.

    `text`: the suite as its file holds it."""
    from specbench.cli.watching import watched
    from specbench.errors import SpecbenchError
    from specbench.execution.runner import run_plan
    from specbench.execution.slots import PORTS
    from specbench.plan import make_plan, rehearse

    if args.full and not args.rehearse:
        raise SpecbenchError("--full belongs to --rehearse: a real run is always whole")
    suite = launched_by(suite, args.launcher)
    refused = None if args.no_check else checked(suite, args.rehearse, args.variant)
    suite, rehearsal = rehearse(suite, args.full, args.launches or 1) if args.rehearse else (suite, None)
    suite = with_launches(suite, args.launches)
    plan = chosen(make_plan(suite), args.variant)
    with watched(args, plan, rehearsal) as watch:
        return watch.done(run_plan(plan, text, results, watch.on_event, rehearsal, args.ports or PORTS, refused))


def _resumed(args: argparse.Namespace) -> "Outcome":
    from specbench.cli.resuming import plan_again
    from specbench.cli.watching import watched
    from specbench.errors import SpecbenchError
    from specbench.execution.resume import Resume
    from specbench.execution.runner import resume_plan
    from specbench.execution.slots import PORTS

    given = {"--out": args.out, "--rehearse": args.rehearse, "--full": args.full, "--variant": args.variant}
    given |= {"--launches": args.launches, "--launcher": args.launcher}
    if words := [word for word, value in given.items() if value]:
        raise SpecbenchError(f"--resume goes on as the run was begun; leave out {', '.join(words)}")
    plan, run = plan_again(Path(args.resume), args.suite)
    names = [trial.variant for trial in plan.trials]
    refused = checked(plan.suite, run.simulated, names) if run.checked and not args.no_check else None
    resume = Resume(folder=Path(args.resume), redo_failed=args.redo_failed)
    with watched(args, plan, run.rehearsal) as watch:
        return watch.done(resume_plan(plan, resume, watch.on_event, run.rehearsal, args.ports or PORTS, refused))


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


def show(folder: Path, out: TextIO) -> None:
    """Prints the table of a run's folder and writes its reports."""
    from specbench.render import terminal

    judgement = write_reports(folder)
    on_terminal = out.isatty()
    columns = shutil.get_terminal_size().columns if on_terminal else PIPED_COLUMNS
    print(terminal.render(judgement, columns, color=on_terminal), file=out)
    print(f"results: {folder}", file=out)
    print(f"as a page with plots: specbench report {shlex.quote(str(folder))}", file=out)


def write_reports(folder: Path, page: bool = False) -> "Judgement":
    """Judges a run and writes its reports into its folder, with the page and its plots if asked."""
    from specbench.analysis.judge import judge_run
    from specbench.cli.page import PAGE_FILE, write_page
    from specbench.render import json_report, markdown
    from specbench.store import read_run, replace_file

    stored = read_run(folder)
    judgement = judge_run(stored)
    if page:
        write_page(stored, judgement, folder / PAGE_FILE)
    replace_file(folder / "report.md", markdown.render(judgement).encode())
    replace_file(folder / "report.json", json_report.render(judgement).encode())
    return judgement
