"""Who watches a run: a person on standard error, and a program that asked for JSON lines."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from specbench.errors import SpecbenchError

if TYPE_CHECKING:
    from specbench.execution.bench import OnEvent
    from specbench.execution.runner import Outcome
    from specbench.plan import Plan
    from specbench.records import Event
    from specbench.render.event_lines import EventLines

STANDARD_OUTPUT = "-"


def add_watching(parser: argparse.ArgumentParser) -> None:
    """Declares how progress is told."""
    parser.add_argument("--quiet", action="store_true", help="no progress, only the answer")
    parser.add_argument(
        "--json-events",
        metavar="FILE",
        help="progress as JSON, one object a line; - is standard output, and the answer goes to standard error then",
    )


def answers_to(args: argparse.Namespace) -> TextIO:
    """Where tables and verdicts go: standard output, unless it carries JSON lines."""
    return sys.stderr if args.json_events == STANDARD_OUTPUT else sys.stdout


class Watch:
    """Gets the events of a run, and its end."""

    def __init__(self, shown: "OnEvent", lines: "EventLines | None") -> None:
        from specbench.render.live import enduring

        self._shown = shown
        self._lines = lines
        self._told = None if lines is None else enduring(lines)

    def on_event(self, event: "Event") -> None:
        """Everybody is told; who has gone is not."""
        self._shown(event)
        if self._told is not None:
            self._told(event)

    def done(self, outcome: "Outcome") -> "Outcome":
        """Tells how it ended, and hands it on."""
        from specbench.render.live import GONE

        if self._lines is not None:
            with contextlib.suppress(*GONE):
                self._lines.done(str(outcome.folder), outcome.exit_code)
        return outcome


@contextlib.contextmanager
def watched(args: argparse.Namespace, plan: "Plan", rehearsal: str | None) -> Iterator[Watch]:
    """Raises SpecbenchError where the lines can't be written."""
    from specbench.render.event_lines import EventLines
    from specbench.render.live import progress

    with _opened(args.json_events) as stream, progress(sys.stderr, args.quiet, plan, rehearsal) as shown:
        yield Watch(shown, None if stream is None else EventLines(lambda line: _write(stream, line), plan, rehearsal))


def _write(stream: TextIO, line: str) -> None:
    """At once: whoever waits for it must not wait for a buffer to fill."""
    stream.write(f"{line}\n")
    stream.flush()


@contextlib.contextmanager
def _opened(name: str | None) -> Iterator[TextIO | None]:
    if name is None:
        yield None
    elif name == STANDARD_OUTPUT:
        yield sys.stdout
    else:
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(Path(name).open("w", encoding="utf-8"))
            except OSError as error:
                raise SpecbenchError(f"--json-events {name}: can't be written: {error.strerror}") from None
            yield stream
