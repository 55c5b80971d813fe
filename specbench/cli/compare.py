"""Compare two results, or two variants of one run: did anything change, and is it within the margin.

Exit codes: 0 pass, 1 fail, 2 wrong usage or not comparable (every reason is named), 3 inconclusive.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specbench.analysis.comparing import Comparison, Options

PIPED_COLUMNS = 100
FORMATS = ("terminal", "markdown", "json", "junit", "github")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("a", metavar="A", help="the reference: a run's folder")
    parser.add_argument("b", metavar="B", nargs="?", help="what is judged: a run's folder; left out with --within")
    parser.add_argument("--within", metavar=("ONE", "OTHER"), nargs=2, help="two variants of A, whose launches alternate")
    parser.add_argument("--variant", metavar="NAME", nargs="+", default=[], help="only these (default: all that both hold)")
    add_question(parser)
    parser.add_argument("--format", choices=FORMATS, default="terminal", help="what to print (default: terminal)")
    parser.add_argument("--file", metavar="FILE", help="write it there instead of printing it")


def add_question(parser: argparse.ArgumentParser) -> None:
    """What is declared before looking."""
    parser.add_argument(
        "--metric", metavar="NAME", action="append", help="a primary metric, at most four; may be repeated (default: "
        "output_tps, accept_length, ttft_p50_s, tpot_p50_s)",
    )  # fmt: skip
    parser.add_argument(
        "--level", metavar="WORKLOAD@STREAMS", type=_level, help="answer for this level (default: all together)"
    )
    parser.add_argument("--factor", metavar="KEY", action="append", default=[], help="under test, so may differ; repeat it")
    parser.add_argument(
        "--margin", metavar="PERCENT", type=_percent, default=0.02, help="loss that is accepted (default: 2)"
    )
    parser.add_argument(
        "--calibration", metavar="FILE", help="what `calibrate` stored (default: beside A, of suite and host)"
    )


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError for wrong usage."""
    from specbench.analysis.comparing.compare import compare_runs, compare_within
    from specbench.cli.calibration import calibration_for
    from specbench.errors import SpecbenchError
    from specbench.store import replace_file
    from specbench.streams import open_result

    if bool(args.b) == bool(args.within):
        raise SpecbenchError("compare needs two folders, A and B, or one and --within ONE OTHER")
    a = open_result(args.a)
    calibration = calibration_for(a, args.calibration)
    if args.within:
        one, other = args.within
        comparison = compare_within(a, one, other, options_of(args), calibration)
    else:
        comparison = compare_runs(a, open_result(args.b), options_of(args), calibration)
    text = rendered(comparison, args.format)
    if args.file:
        replace_file(Path(args.file), text.encode())
    else:
        print(text, end="")
    if args.format == "github":
        append_to_summary(rendered(comparison, "markdown"))
    return comparison.exit_code


def options_of(args: argparse.Namespace) -> "Options":
    """What `add_question` and `--variant` declared."""
    from specbench.analysis.comparing import PRIMARY, Options

    return Options(
        metrics=tuple(args.metric or PRIMARY),
        factors=tuple(args.factor),
        level=args.level,
        margin_ratio=args.margin,
        variants=tuple(args.variant),
    )


def rendered(comparison: "Comparison", form: str) -> str:
    """The text of one of `FORMATS`."""
    from specbench.render.comparison import github, json_text, junit, markdown, terminal

    if form == "terminal":
        on_terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if on_terminal else PIPED_COLUMNS
        return terminal.render(comparison, columns, color=on_terminal)
    forms = {"markdown": markdown.render, "json": json_text.render, "junit": junit.render, "github": github.render}
    return forms[form](comparison)


def append_to_summary(text: str) -> None:
    """Markdown, to the job's summary, where GitHub names a file for it. One that can't be written changes no verdict."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            print(f"specbench: the job's summary {path} can't be written: {error.strerror}", file=sys.stderr)


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no percentage between 0 and 100, such as 2")
    return value


def _level(text: str) -> tuple[str, int]:
    name, _, streams = text.rpartition("@")
    if not name or not streams.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no level; write WORKLOAD@STREAMS, such as chat@8 (open loop: chat@0)")
    return name, int(streams)
