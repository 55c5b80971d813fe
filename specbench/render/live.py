"""Progress while a run goes on: status lines on a terminal, a line now and then where it is piped."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from specbench.plan import Plan, Trial
from specbench.records import Event, Progress
from specbench.render import words as said
from specbench.render.remaining import Remaining
from specbench.render.words import clean
from specbench.units import Second, counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

OnEvent = Callable[[Event], None]
PLAIN_EVERY_S = 10.0
"""Between two lines that say only how far a level or a start-up is; in long launches a tenth of what has passed, at most:"""
PLAIN_SELDOM_S = 60.0
GONE = (OSError, ValueError)
"""What writing to a stream raises once it is closed."""
PASSING = ("phase", "progress")
"""Kinds that are worth a status line, not a line of their own each."""
UNTOLD = ("request", "kept")
"""What a `progress`, or another line, tells anyway."""


@contextmanager
def progress(stream: TextIO, quiet: bool, plan: Plan, rehearsal: str | None) -> Iterator[OnEvent]:
    """What shows events. Everything goes to `stream`; nothing when quiet."""
    if quiet:
        yield lambda event: None
        return
    words, remaining = Words(plan, rehearsal is not None), Remaining(plan, rehearsal is not None)
    with suppress(*GONE):
        stream.write(f"{words.opening(rehearsal)}\n")
    if not stream.isatty():
        yield enduring(Plain(stream, words, remaining))
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False, markup=False)
    with console.status("starting") as status:
        yield enduring(Shown(console, status, words, remaining))


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
        speed = speed_text(event.progress) if event.progress else ""
        gpus = gpu_text(event.gpu_ids, event.progress) if event.kind in ("launch", "progress", "phase") else ""
        return f"{self._mark}{self._place(event.trial)}{what}{clean(event.text)}{speed}{gpus}{self._when(event)}"

    def overall(self, remaining: Remaining) -> str:
        """`4 of 18 launches done, about 12 min left`."""
        done = f"{remaining.done_count} of {counted(len(self._plan.trials), 'launch')} done"
        return f"{self._mark}{done}, about {duration(remaining.left_s)} left"

    def _place(self, trial: Trial | None) -> str:
        return f"[{trial.order_index + 1}/{len(self._plan.trials)} {trial.folder}] " if trial else ""

    def _when(self, event: Event) -> str:
        return f" ({duration(event.at_s)})" if event.trial else ""


def speed_text(progress: Progress) -> str:
    """` · 412.0 tok/s · AL 2.31`, as far as it is known."""
    rate = f" · {said.rate(progress.output_tps)} tok/s" if progress.output_tps is not None else ""
    return rate + (f" · AL {said.length(progress.accept_length)}" if progress.accept_length is not None else "")


def gpu_text(gpu_ids: tuple[int, ...], progress: Progress | None) -> str:
    """` · GPU 0-7: 5120 W, 71 °C`: power of all together, the hottest one's temperature; nothing without GPUs."""
    if not gpu_ids:
        return ""
    several = len(gpu_ids) > 1 and gpu_ids == tuple(range(gpu_ids[0], gpu_ids[-1] + 1))
    names = f"{gpu_ids[0]}-{gpu_ids[-1]}" if several else ",".join(map(str, gpu_ids))
    sample = progress.gpus if progress is not None and isinstance(progress.gpus, list) else []
    power_w, hottest_c = _numbers(sample, "power_w"), _numbers(sample, "temperature_c")
    told = [f"{sum(power_w):.0f} W"] * bool(power_w) + [f"{max(hottest_c, default=0):.0f} °C"] * bool(hottest_c)
    return f" · GPU {names}" + (f": {', '.join(told)}" if told else "")


def _numbers(sample: list[Any], name: str) -> list[float]:
    values = [one.get(name) for one in sample if isinstance(one, Mapping)]
    return [float(one) for one in values if isinstance(one, int | float)]


class Plain:
    """Lines for a pipe or a log file."""

    def __init__(self, stream: TextIO, words: Words, remaining: Remaining) -> None:
        self._stream = stream
        self._words = words
        self._remaining = remaining
        self._last: dict[Trial | None, Event] = {}
        """By launch: several may run side by side."""

    def __call__(self, event: Event) -> None:
        self._remaining.take(event)
        if event.kind in UNTOLD or (event.kind in PASSING and not self._is_due(event)):
            return
        self._last[event.trial] = event
        self._stream.write(f"{self._words.line(event)}\n")
        if event.kind == "progress" or (event.kind == "launch_done" and self._remaining.left_s > 0):
            self._stream.write(f"{self._words.overall(self._remaining)}\n")
        self._stream.flush()

    def _is_due(self, event: Event) -> bool:
        last = self._last.get(event.trial)
        if last is None or (event.kind == "phase" and (last.kind, last.text) != (event.kind, event.text)):
            return True
        return event.at_s - last.at_s >= min(PLAIN_SELDOM_S, max(PLAIN_EVERY_S, event.at_s / 10))


class Shown:
    """A terminal: a status line for the whole and one for each launch that runs; what does not pass stays above them."""

    def __init__(self, console: "Console", status: "Status", words: Words, remaining: Remaining) -> None:
        self._console = console
        self._status = status
        self._words = words
        self._remaining = remaining
        self._running: dict[Trial, str] = {}

    def __call__(self, event: Event) -> None:
        from rich.text import Text

        self._remaining.take(event)
        if event.kind in UNTOLD:
            return
        line = self._words.line(event)
        if event.kind not in PASSING:
            self._console.print(line)
        if event.trial is not None:
            self._running[event.trial] = line
            if event.kind == "launch_done":
                del self._running[event.trial]
        shown = [self._words.overall(self._remaining), *self._running.values()]
        room = max(20, self._console.width - 4)  # beside the spinner; a line that wraps would push the others about
        self._status.update(Text("\n".join(one if len(one) <= room else f"{one[: room - 1]}…" for one in shown)))


def duration(seconds: Second) -> str:
    """`42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
