"""Progress while a run goes on: a status line on a terminal, a line now and then where it is piped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from specbench.plan import Plan, Trial
from specbench.records import Event
from specbench.render.words import clean
from specbench.units import Second

if TYPE_CHECKING:
    from rich.status import Status

OnEvent = Callable[[Event], None]
PLAIN_EVERY_S = 10.0
"""Between two lines that say only how far a level or a start-up is."""
GONE = (OSError, ValueError)
"""What writing to a stream raises once it is closed."""
PASSING = ("phase", "request")
"""Kinds that are worth a status line, not a line of their own each."""


@contextmanager
def progress(stream: TextIO, quiet: bool, plan: Plan, rehearsal: str | None) -> Iterator[OnEvent]:
    """What shows events. Everything goes to `stream`; nothing when quiet."""
    if quiet:
        yield lambda event: None
        return
    words = Words(plan, rehearsal is not None)
    with suppress(*GONE):
        stream.write(f"{words.opening(rehearsal)}\n")
    if not stream.isatty():
        yield enduring(Plain(stream, words))
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False)
    with console.status("starting") as status:
        yield enduring(Shown(console.print, status, words))


def enduring(tell: OnEvent) -> OnEvent:
    """Progress that nobody can read any more (a closed terminal, a pipe without a reader) must not end the run."""
    gone = False

    def told(event: Event) -> None:
        nonlocal gone
        if not gone:
            try:
                tell(event)
            except GONE:
                gone = True

    return told


class Words:
    """Events in words. What is simulated says so in each line."""

    def __init__(self, plan: Plan, simulated: bool) -> None:
        self._plan = plan
        self._mark = "SIMULATED " if simulated else ""

    def opening(self, rehearsal: str | None) -> str:
        """What will be done, before it begins."""
        count = len(self._plan.trials)
        load = f", {rehearsal}" if rehearsal else f", about {duration(self._plan.estimate_s)} by the suite's estimate"
        return f"{self._mark}{self._plan.suite.name}: {count} {'launch' if count == 1 else 'launches'}{load}"

    def line(self, event: Event) -> str:
        """One event."""
        what = "FAILED: " if event.kind == "failure" else ""
        return f"{self._mark}{self._place(event.trial)}{what}{clean(event.text)}{self._when(event)}"

    def _place(self, trial: Trial | None) -> str:
        return f"[{trial.order_index + 1}/{len(self._plan.trials)} {trial.folder}] " if trial else ""

    def _when(self, event: Event) -> str:
        return f" ({duration(event.at_s)})" if event.trial else ""


class Plain:
    """Lines for a pipe or a log file."""

    def __init__(self, stream: TextIO, words: Words) -> None:
        self._stream = stream
        self._words = words
        self._last: dict[Trial | None, Event] = {}
        """By launch: several may run side by side."""

    def __call__(self, event: Event) -> None:
        if event.kind in PASSING and not self._is_due(event):
            return
        self._last[event.trial] = event
        self._stream.write(f"{self._words.line(event)}\n")
        self._stream.flush()

    def _is_due(self, event: Event) -> bool:
        last = self._last.get(event.trial)
        if last is None or (event.kind == "phase" and (last.kind, last.text) != (event.kind, event.text)):
            return True
        return event.at_s - last.at_s >= PLAIN_EVERY_S


class Shown:
    """A terminal: what passes stands in the status line, the rest stays above it."""

    def __init__(self, write: Callable[[str], None], status: "Status", words: Words) -> None:
        self._write = write
        self._status = status
        self._words = words

    def __call__(self, event: Event) -> None:
        from rich.text import Text

        line = self._words.line(event)
        self._status.update(Text(line))
        if event.kind not in PASSING:
            self._write(line)


def duration(seconds: Second) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
