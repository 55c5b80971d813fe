"""Run a suite as `run` does, compare it with the last good night or a pinned run, and keep a history with its page.

All lies in results/nightly/<suite>/: index.html, history.json, latest/ with tonight's answer in every form, and the runs.

Exit codes: 0 pass (or the first night), 1 worse than the margin, 2 not comparable, wrong usage or failed to run,
3 inconclusive, 130 interrupted.
"""

import argparse
from pathlib import Path

from specbench.cli.compare import FORMATS, add_question
from specbench.cli.run import add_load

WEBHOOK_VARIABLE = "SPECBENCH_WEBHOOK"
SHAPES = ("auto", "generic", "slack")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", help="the suite file")
    parser.add_argument("--out", metavar="DIR", default="results", help="nights lie in DIR/nightly/ (default: results)")
    pin = parser.add_mutually_exclusive_group()
    pin.add_argument("--pin", metavar="DIR", help="from now on compare with this run, whatever later nights give")
    pin.add_argument("--unpin", action="store_true", help="from now on compare with the last good night")
    add_load(parser)
    add_question(parser)
    parser.add_argument("--format", choices=FORMATS, default="terminal", help="what to print (default: terminal)")
    parser.add_argument(
        "--keep-gib", metavar="N", type=_gib, help="delete the oldest runs beyond it, never a reference or the newest"
    )
    parser.add_argument(
        "--webhook",
        metavar="URL",
        help=f"tell this address how it went; better in the variable {WEBHOOK_VARIABLE}, which no list of processes shows",
    )
    parser.add_argument(
        "--webhook-shape", choices=SHAPES, default="auto", help="what the webhook reads (default: auto, by its host)"
    )
    parser.add_argument("--webhook-trouble", action="store_true", help="tell it only of nights that did not pass")


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError where there is no night to tell of."""
    from specbench.cli.night import Asked, spend
    from specbench.cli.suites import read_suite
    from specbench.cli.telling import telling
    from specbench.errors import SpecbenchError
    from specbench.nights.folder import NightFolder, folder_of
    from specbench.preflight.suites import with_methods
    from specbench.suite import read_text

    tell = telling(args)
    try:
        text = read_text(args.suite)
        suite = with_methods(read_suite(args.suite, text))
    except SpecbenchError as error:
        folder = NightFolder(folder_of(Path(args.out), Path(args.suite).stem, args.rehearse), Path(args.suite).stem)
        if not folder.path.is_dir():
            raise
        with folder.alone():
            return spend(args, Asked(trouble=str(error)), folder, tell)
    folder = NightFolder(folder_of(Path(args.out), suite.name, args.rehearse), suite.name)
    folder.make()
    with folder.alone():
        return spend(args, Asked(suite=suite, text=text), folder, tell)


def _gib(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write a number of GiB above 0, such as 50")
    return value
