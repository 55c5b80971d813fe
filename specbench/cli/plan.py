"""Print what `run` would do, before anything is done: order, commands, environment, duration.

Needs neither a GPU nor the engine. Each command can be pasted into a shell.
"""

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", help="the suite file, such as suites/kimi.yaml")
    parser.add_argument("--launcher", choices=("local", "slurm"), help="where servers run, instead of as the suite says")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.add_argument("--rehearse", action="store_true", help="plan the rehearsal against the simulated engine")
    parser.add_argument("--full", action="store_true", help="with --rehearse: keep the whole load")


def run(args: argparse.Namespace) -> int:
    """0, or SpecbenchError."""
    from specbench.cli.choice import launched_by
    from specbench.cli.outlook import look_ahead
    from specbench.cli.outlook_text import outlook_json, outlook_text
    from specbench.cli.suites import read_suite
    from specbench.errors import SpecbenchError

    if args.full and not args.rehearse:
        raise SpecbenchError("--full belongs to --rehearse: a plan without it shows the whole load anyway")
    suite = launched_by(read_suite(args.suite), args.launcher)
    outlook = look_ahead(suite, rehearsing=args.rehearse, full=args.full)
    sys.stdout.write(outlook_json(outlook) if args.json else outlook_text(outlook))
    return 0
