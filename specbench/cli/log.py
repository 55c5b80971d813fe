"""Read a server's log, from a file or from stdin (`-`): acceptance over time and pooled, speed, start-up, cause of death.

Knows SGLang, vLLM and llama.cpp; needs no engine, no GPU and no network.
Exit codes: 0 whatever the log says, 2 when there is no such file or no engine's log in it.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from specbench.errors import SpecbenchError

POLL_S = 0.5
PIPED_COLUMNS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("file", metavar="FILE", help="the log; - reads stdin")
    parser.add_argument("--engine", choices=("sglang", "vllm", "llamacpp"), help="who wrote it (default: told by its lines)")
    parser.add_argument("--engine-version", metavar="V", help="such as 0.5.8; decides what a printed accept rate means")
    parser.add_argument("--json", action="store_true", help="strict JSON instead of text")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on reading as the log grows; Ctrl-C ends it and prints the report"
    )


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError when the log can't be read."""
    from specbench.analysis.log_report import study
    from specbench.render import log_report

    with _open(args.file) as source:
        found = study(_until_interrupt(_lines(source, args.follow)), args.engine, args.engine_version)
    if found is None:
        raise SpecbenchError(f"{args.file}: no line of SGLang, vLLM or llama.cpp in it; --engine names the engine")
    print(log_report.as_json(found) if args.json else log_report.render(found, PIPED_COLUMNS), end="")
    return 0


def _open(name: str) -> TextIO:
    if name == "-":
        return open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n", closefd=False)
    path = Path(name)
    try:
        return path.open(encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise SpecbenchError(f"{name}: {error.strerror or error}") from None


def _lines(source: TextIO, follow: bool) -> Iterator[str]:
    """Lines; when following, a line without its end is waited for."""
    rest = ""
    while True:
        for line in source:
            rest += line
            if rest.endswith("\n") or not follow:
                yield rest
                rest = ""
        if not follow:
            return
        time.sleep(POLL_S)


def _until_interrupt(lines: Iterable[str]) -> Iterator[str]:
    """Ctrl-C ends the log, not the report."""
    try:
        yield from lines
    except KeyboardInterrupt:
        return
