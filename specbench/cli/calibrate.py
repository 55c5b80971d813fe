"""Launch one server again and again and see how far the launches differ by themselves: how small a change can be seen.

What is found is stored beside the results, for this suite and this host, and `compare` uses it.

Exit codes: 0, 1 when a launch failed, 2 when something is lacking, 130 interrupted.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from specbench.cli.choice import launch_count
from specbench.cli.watching import add_watching, answers_to

if TYPE_CHECKING:
    from specbench.execution.runner import Outcome

DEFAULT_LAUNCHES = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="the suite file")
    parser.add_argument("--from", dest="run_folder", metavar="DIR", help="launch nothing: use the launches of this run")
    parser.add_argument("--variant", metavar="NAME", help="whose launches (default: the baseline's)")
    parser.add_argument(
        "--launches", metavar="N", type=launch_count, default=DEFAULT_LAUNCHES, help=f"default: {DEFAULT_LAUNCHES}"
    )
    parser.add_argument("--out", metavar="DIR", default="results", help="where runs lie (default: results)")
    parser.add_argument("--rehearse", action="store_true", help="simulated server, shrunk load")
    add_watching(parser)


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError."""
    from specbench.errors import SpecbenchError
    from specbench.render.words import clean

    if bool(args.suite) == bool(args.run_folder):
        raise SpecbenchError("calibrate needs a suite to launch, or --from DIR, a run that is there already")
    if args.run_folder:
        conclude(Path(args.run_folder), args.variant, Path(args.out), answers_to(args))
        return 0
    outcome = launch_all(args)
    if outcome.failed or outcome.interrupted_by:
        for sentence in outcome.failed:
            print(f"specbench: failed: {clean(sentence)}", file=sys.stderr)
        return outcome.exit_code
    conclude(outcome.folder, args.variant, Path(args.out), answers_to(args))
    return 0


def launch_all(args: argparse.Namespace) -> "Outcome":
    """The runs of one variant."""
    from specbench.cli.choice import chosen, with_launches
    from specbench.cli.run import checked
    from specbench.cli.suites import read_suite
    from specbench.cli.watching import watched
    from specbench.execution.runner import run_plan
    from specbench.plan import make_plan, rehearse
    from specbench.preflight.suites import with_methods

    suite = with_methods(read_suite(args.suite))
    name = args.variant or suite.baseline
    refused = checked(suite, args.rehearse, [name])
    suite_text = Path(suite.path).read_text(encoding="utf-8")
    suite, rehearsal = rehearse(suite, False, args.launches) if args.rehearse else (suite, None)
    plan = chosen(make_plan(with_launches(suite, args.launches)), [name])
    with watched(args, plan, rehearsal) as watch:
        return watch.done(run_plan(plan, suite_text, Path(args.out), watch.on_event, rehearsal, refused=refused))


def conclude(folder: Path, variant: str | None, results: Path, out: TextIO) -> None:
    """Prints what the launches of a run tell, and stores it."""
    from specbench.analysis.cells import suite_of
    from specbench.analysis.comparing import MARGIN_RATIO
    from specbench.analysis.comparing.calibrate import calibrated, enough_launches, outlooks
    from specbench.analysis.comparing.launches import read_sides
    from specbench.cli.calibration import calibration_path, write_calibration
    from specbench.errors import SpecbenchError
    from specbench.render.comparison import outlook
    from specbench.streams import open_result

    result = open_result(folder)
    suite = suite_of(result)
    name = variant or suite.baseline
    if name not in [one.name for one in suite.variants]:
        known = ", ".join(one.name for one in suite.variants)
        raise SpecbenchError(f"{folder} has no variant '{name}'; there are: {known}")
    (sides,) = read_sides([(result, suite, [name])])
    calibration = calibrated(sides[name])
    found = outlooks(calibration)
    path = calibration_path(results, calibration.suite_name, calibration.host, calibration.simulated)
    print(outlook.render(calibration, found, enough_launches(found), MARGIN_RATIO), end="", file=out, flush=True)
    write_calibration(path, calibration)
    print(f"calibration: {path}", file=out)
