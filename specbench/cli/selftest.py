"""Measure this machine's load client against a server that knows the truth: its lateness, its cost, its limit.

The result goes into the run.json of every later run. With SUITE: whether that suite's load is within the limit.
Exit codes: 0 all well, 1 the suite's load is beyond the limit or answers failed.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specbench.errors import SpecbenchError
from specbench.units import counted

if TYPE_CHECKING:
    from specbench.execution.selftest import SelfTest
    from specbench.suite import Suite

LONGEST_S = 60.0
SHORTEST_S = 2.0
NEARLY_ALL = 0.85
"""Of a core: below, something else than the client was the limit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("suite", metavar="SUITE", nargs="?", help="a suite file whose load is held against the limit")
    parser.add_argument("--seconds", metavar="S", type=float, default=20.0, help="how long, 2 to 60 (default: 20)")


def run(args: argparse.Namespace) -> int:
    """The exit code."""
    from specbench.cli.suites import read_suite
    from specbench.execution import selftest

    if not SHORTEST_S <= args.seconds <= LONGEST_S:
        raise SpecbenchError(f"--seconds must be {SHORTEST_S:g} to {LONGEST_S:g}, not {args.seconds:g}")
    suite = read_suite(args.suite) if args.suite else None
    print(f"specbench: about {args.seconds:g} s; results mean little while the machine does other work", file=sys.stderr)
    result = selftest.run(args.seconds)
    print("\n".join(lines(result)))
    print(f"stored: {selftest.stored_path()}")
    within = suite is None or outlook(suite, result)
    return 0 if within and not any(one.failed_count for one in result.paced) else 1


def outlook(suite: "Suite", result: "SelfTest") -> bool:
    """Says whether a suite's load is within what this machine's client can take."""
    from specbench.execution.scale import one_process_rps, peak_rps, processes_count

    offered_rps, limit_rps = peak_rps(suite), one_process_rps(result)
    count = processes_count(offered_rps, limit_rps, None)
    within = offered_rps <= count * limit_rps
    print(
        f"{suite.name}: at most {offered_rps:,.0f} chunks/s (streams × `expected.per_user_tps`; open loop: rate × tokens), "
        f"{'within' if within else 'BEYOND'} what {count} client process{'es' if count > 1 else ''} "
        f"take{'' if count > 1 else 's'} with half a core each ({count * limit_rps:,.0f})"
    )
    return within


def lines(result: "SelfTest") -> Iterator[str]:
    """A table of the paced loads, then the limit."""
    yield f"load client of specbench {result.specbench_version} on {result.host}; arrivals stamped by the {result.clock}"
    yield f"{'':14}{'chunks':>9}{'CPU/chunk':>12}{'late p50':>11}{'late p99':>11}{'TTFT err p99':>14}{'failed':>8}"
    for one in result.paced:
        yield (
            f"{one.name:14}{one.chunk_count:>9}{one.cpu_per_chunk_s * 1e6:>9.1f} µs{one.late_p50_s * 1e3:>8.3f} ms"
            f"{one.late_p99_s * 1e3:>8.3f} ms{one.ttft_error_p99_s * 1e3:>11.3f} ms{one.failed_count:>8}"
        )
    more = "" if result.saturated_core_ratio > NEARLY_ALL else " or more: the server was the limit"
    yield (
        f"limit: {result.saturated_rps:,.0f} chunks/s at {result.saturated_core_ratio:.0%} of a core{more}; "
        f"measured with {counted(result.streams_count, 'stream')}"
    )
