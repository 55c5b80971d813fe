"""Look for faults before anything starts: each launch's command line against its checkpoints and the planned load.

Prints nothing when there is nothing to say; checkpoints that could not be read are named on standard error.

Exit codes: 0 no errors (there may be warnings), 1 an error was found, 2 the suite can't be read.
"""

import argparse
import sys
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from specbench.analysis import Finding
    from specbench.preflight.suites import Examined

COLUMNS = 100
MANY = 4
"""Variants named in a line of the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", help="the suite file, such as suites/kimi.yaml")
    parser.add_argument("--json", action="store_true", help="the findings as a JSON list")
    parser.add_argument("--weights", action="store_true", help="read the values of local drafters' fc and lm_head as well")


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError when the suite can't be read."""
    from specbench.cli.suites import read_suite
    from specbench.preflight import as_json
    from specbench.preflight.suites import examine, with_methods

    suite = with_methods(read_suite(args.suite))
    examined = examine(suite, weights=args.weights)
    if args.json:
        print(as_json(examined.findings).decode())
    elif examined.findings:
        print("\n".join([*table(examined.findings), "", *told(examined.findings)]))
    if silent := unread(examined):
        print(f"specbench: {silent}", file=sys.stderr)
    return 1 if examined.has_errors else 0


def unread(examined: "Examined") -> str:
    """Which checkpoints could not be looked into, by reason."""
    reasons: dict[str, list[str]] = {}
    for one in examined.unread:
        reasons.setdefault(one.unknown, []).append(one.name)
    told_reasons = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
    return f"unknown, so not compared: {told_reasons}" if told_reasons else ""


def grouped(findings: "Sequence[Finding]") -> "Iterator[tuple[Finding, list[str]]]":
    """Each finding once with the variants that it concerns, errors first."""
    ranks = {"error": 0, "warning": 1, "note": 2}

    def key(one: "Finding") -> tuple[int, str, str, str, str]:
        return (ranks[one.severity], one.code, one.message, one.evidence, one.remedy)

    for _, group in groupby(sorted(findings, key=key), key=key):
        same = list(group)
        yield same[0], [one.variant for one in same if one.variant]


def table(findings: "Sequence[Finding]") -> "Iterator[str]":
    """A line a finding: how grave, its code, the variants."""
    rows = [("", "finding", "variants"), *((one.severity, one.code, _few(names)) for one, names in grouped(findings))]
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    for severity, code, names in rows:
        yield f"{severity:{widths[0]}}  {code:{widths[1]}}  {names}".rstrip()


def _few(names: "Sequence[str]") -> str:
    """As many as a line holds."""
    shown = ", ".join(names[:MANY]) or "all"
    return f"{shown} and {len(names) - MANY} more" if len(names) > MANY else shown


def told(findings: "Sequence[Finding]") -> "Iterable[str]":
    """Blocks of lines, errors first."""
    for one, names in grouped(findings):
        yield from block(one, names)


def block(one: "Finding", variants: "Sequence[str]") -> "Iterable[str]":
    """One finding."""
    from specbench.preflight import PAGE

    yield f"{one.severity}: {one.code}" + (f"  ({', '.join(variants)})" if variants else "")
    for label, text in (("", one.message), ("seen: ", one.evidence), ("do: ", one.remedy)):
        if text:
            yield textwrap.fill(label + text, COLUMNS, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    yield f"  why: {PAGE}#{one.code}"
