"""Read a server's log, from a file or from stdin (`-`): acceptance over time and pooled, speed, start-up, cause of death.

Knows SGLang, vLLM and llama.cpp; needs no engine, no GPU and no network.
Exit codes: 0 whatever the log says, 2 when there is no such file or no engine's log in it.
"""

import argparse
import io
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from specbench import clock
from specbench.errors import SpecbenchError

if TYPE_CHECKING:
    from specbench.analysis.log_report import LogStudy
    from specbench.analysis.log_tally import Tally
    from specbench.cli.log_source import Interrupt

LIVE_S = 2.0
"""While a log is followed, at most a line in this time."""
PIPED_COLUMNS = 100
QUIET_ALGEBRA = ("OPENBLAS_NUM_THREADS", "1")
"""Numpy's own threads would wait for each other, busily, beside the processes that read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("file", metavar="FILE", help="the log, also packed (gz, bz2, xz); - reads stdin")
    parser.add_argument("--engine", choices=("sglang", "vllm", "llamacpp"), help="who wrote it (default: told by its lines)")
    parser.add_argument("--engine-version", metavar="V", help="such as 0.5.8; decides what a printed accept rate means")
    parser.add_argument("--json", action="store_true", help="strict JSON instead of text")
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="go on reading as the log grows, a line for what is new; Ctrl-C ends it and prints the report",
    )


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError when the log can't be read."""
    from specbench.cli.log_source import Interrupt, open_log

    os.environ.setdefault(*QUIET_ALGEBRA)
    check_version(args.engine_version)
    interrupt, follow = Interrupt(), args.follow
    if follow:
        signal.signal(signal.SIGINT, interrupt)
    live = Live() if follow and not args.json else None
    with open_log(args.file, follow) as source:
        found = _study(source, args, interrupt, live)
    from specbench.render import log_report
    from specbench.suite.secrets import secrets_of

    if found is None:
        raise SpecbenchError(f"{args.file}: no line of SGLang, vLLM or llama.cpp in it; --engine names the engine")
    text = log_report.as_json(found) if args.json else log_report.render(found, PIPED_COLUMNS)
    print(secrets_of(None, os.environ).clean(text), end="")
    return 0


def _study(source: BinaryIO, args: argparse.Namespace, interrupt: "Interrupt", live: "Live | None") -> "LogStudy | None":
    """A large file of SGLang's is read by several processes, which start before the rest is imported."""
    from specbench.cli.log_pieces import engine_at_start, process_count, read_pieces
    from specbench.cli.log_source import blocks

    path = None if args.file == "-" else Path(args.file)
    size_bytes = path.stat().st_size if path is not None and isinstance(source, io.FileIO) and not args.follow else 0
    count = process_count(size_bytes)
    if count > 1 and (args.engine or engine_at_start(source.fileno())) == "sglang":
        with read_pieces(source.fileno(), size_bytes, count) as pieces:
            from specbench.analysis.log_report import study_read

            return study_read(pieces, "sglang", args.engine_version)
    from specbench.analysis.log_report import study_blocks

    return study_blocks(blocks(source, args.follow, interrupt, path), args.engine, args.engine_version, live)


def check_version(word: str | None) -> None:
    """Raises SpecbenchError for what is no version."""
    from packaging.version import InvalidVersion, Version

    try:
        Version(word or "0")
    except InvalidVersion:
        raise SpecbenchError(f"--engine-version {word} is no version; write one such as 0.5.8") from None


class Live:
    """Says what was read while a log is followed: a line for each stretch, as it comes."""

    def __init__(self) -> None:
        self._told_s = clock.now_s() - LIVE_S
        self._records = 0

    def __call__(self, tally: "Tally") -> None:
        """Called after each block."""
        if tally.samples == self._records or clock.now_s() - self._told_s < LIVE_S:
            return
        from specbench.render.log_report import live_line

        print(live_line(tally.timeline.recent()), flush=True)
        self._told_s, self._records = clock.now_s(), tally.samples
