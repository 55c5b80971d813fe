"""One night, step by step: begin its row, run, compare, write the row, rotate, draw the page, tell."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from specbench.errors import SpecbenchError, StoreError
from specbench.nights import History, Night
from specbench.nights.folder import NightFolder
from specbench.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from specbench.analysis.comparing import Comparison
    from specbench.cli.telling import Tell
    from specbench.streams import OpenRun
    from specbench.suite import Suite

GIB = 1024**3
EXIT_NOT_KEPT = 2


class Asked(NamedTuple):
    """A suite with its file's text, or why it can't be read."""

    suite: "Suite | None" = None
    text: str = ""
    trouble: str = ""


class Spent(NamedTuple):
    """A night that is over."""

    night: Night
    comparison: "Comparison | None" = None


def spend(args: argparse.Namespace, asked: Asked, folder: NightFolder, tell: "Tell") -> int:
    """The exit code. Whatever goes wrong from here on is a row of the history."""
    from specbench import clock
    from specbench.analysis.history.outcome import cut_off
    from specbench.suite.secrets import secrets_of

    history = folder.history()
    history = replace(history, nights=cut_off(history.nights))
    night = Night(started_utc=clock.utc_text(), status="running", simulated=args.rehearse)
    folder.write_history(replace(history, nights=(*history.nights, night)))
    try:
        spent = _measured(args, asked, folder, history, night)
    except SpecbenchError as error:
        spent = Spent(_failed(night, *str(error).splitlines()))
    secrets = secrets_of(asked.suite, os.environ)
    told = replace(
        spent.night, ended_utc=clock.utc_text(), headlines=tuple(secrets.clean(one) for one in spent.night.headlines)
    )
    history = replace(history, nights=(*history.nights, told))
    is_kept = _keep(folder, history)
    _conclude(args, folder, history, spent.comparison)
    tell(history.suite_name, told, secrets)
    return told.exit_code or (0 if is_kept else EXIT_NOT_KEPT)


def _keep(folder: NightFolder, history: History) -> bool:
    """Whether the row could be written. The answer is told all the same."""
    try:
        folder.write_history(history)
    except StoreError as error:
        print(f"specbench: {error}; the next night takes this one for killed", file=sys.stderr)
        return False
    return True


def _failed(night: Night, *sentences: str, exit_code: int | None = None) -> Night:
    from specbench.analysis.history.outcome import NOT_RUN

    return replace(night, status="failed", headlines=sentences, exit_code=NOT_RUN if exit_code is None else exit_code)


def _measured(args: argparse.Namespace, asked: Asked, folder: NightFolder, history: History, night: Night) -> Spent:
    """Runs and compares. Raises SpecbenchError as long as nothing was launched."""
    from specbench.analysis.comparing.compare import check_options
    from specbench.analysis.history.outcome import measured
    from specbench.cli.compare import options_of
    from specbench.cli.run import launch, write_reports
    from specbench.streams import open_result

    if asked.suite is None:
        raise SpecbenchError(asked.trouble)
    check_options(options_of(args))
    reference, pinned = _reference(args, folder, history)
    a = None if reference is None else open_result(reference)
    night = replace(night, reference="" if reference is None else str(reference), pinned=pinned)
    outcome = launch(args, asked.suite, asked.text, folder.path)
    night = replace(night, run=outcome.folder.name)
    if outcome.interrupted_by:
        return Spent(_failed(night, "It was interrupted.", exit_code=outcome.exit_code))
    try:
        write_reports(outcome.folder, page=True)
        night = measured(night, open_result(outcome.folder))
        return _compared(args, a, outcome.folder, night, outcome.failed)
    except SpecbenchError as error:
        return Spent(_failed(night, *outcome.failed, *str(error).splitlines()))


def _reference(args: argparse.Namespace, folder: NightFolder, history: History) -> tuple[Path | None, bool]:
    """What to compare with, and whether it is pinned; None on the first night."""
    from specbench.streams import open_result

    if args.pin:
        open_result(args.pin)
        folder.pin(Path(args.pin))
    elif args.unpin:
        folder.unpin()
    pinned = folder.pinned()
    if pinned is not None:
        return pinned, True
    good = next((one for one in reversed(history.nights) if one.is_good and folder.holds(one)), None)
    return (None if good is None else folder.path / good.run), False


def _compared(args: argparse.Namespace, a: "OpenRun | None", run: Path, night: Night, failures: tuple[str, ...]) -> Spent:
    from specbench.analysis.comparing.compare import compare_runs
    from specbench.analysis.history.outcome import NOT_RUN, compared, faults
    from specbench.cli.calibration import calibration_for
    from specbench.cli.compare import options_of
    from specbench.render.nightly import words
    from specbench.streams import open_result

    if a is None:
        unfit = faults(open_result(run), args.variant)
        if failures:
            return Spent(_failed(night, *failures))
        if unfit:
            return Spent(replace(night, status="refused", headlines=(words.UNFIT, *unfit), exit_code=NOT_RUN))
        return Spent(replace(night, status="first", headlines=(words.FIRST,)))
    comparison = compare_runs(a, open_result(run), options_of(args), calibration_for(a, args.calibration))
    night = compared(night, comparison, bool(failures))
    return Spent(replace(night, headlines=(*failures, *words.headlines(comparison))), comparison)


def _conclude(args: argparse.Namespace, folder: NightFolder, history: History, comparison: "Comparison | None") -> None:
    """Prints the answer, writes every form, rotates, draws the page."""
    from specbench.cli.compare import append_to_summary, rendered
    from specbench.cli.watching import answers_to
    from specbench.render.nightly import forms

    night = history.nights[-1]
    answers = answers_to(args)
    if args.format == "terminal" and comparison is not None and night.status != "failed":
        text = rendered(comparison, "terminal")
    else:
        text = forms.render(args.format, history.suite_name, night, comparison)
    print(text, end="", flush=True, file=answers)
    if args.format == "github":
        append_to_summary(forms.render("markdown", history.suite_name, night, comparison))
    out = answers if args.format == "terminal" else sys.stderr
    steps: list[Callable[[], list[str]]] = [
        lambda: [] if args.keep_gib is None else _rotate(folder, history, args.keep_gib),  # first, for it makes room
        lambda: [f"in every form: {folder.write_latest(forms.files(history.suite_name, night, comparison))}"],
        lambda: [f"page: {_draw(folder, history)}"],
        lambda: [f"results: {folder.path / night.run}"] if night.run else [],
    ]
    print("", *(line for step in steps for line in _done(step)), sep="\n", file=out)


def _done(step: "Callable[[], list[str]]") -> list[str]:
    """What it tells. One that fails, on a full disk say, is told of and keeps no other from being tried."""
    try:
        return step()
    except StoreError as error:
        print(f"specbench: {error}", file=sys.stderr)
        return []


def _rotate(folder: NightFolder, history: History, keep_gib: float) -> list[str]:
    """Deletes; tells what, in sentences."""
    from specbench.analysis.history.retention import KeptRun, rotation

    pinned, good = folder.pinned(), history.last_good
    protected = {history.nights[-1].run, good.run if good else "", pinned.resolve().name if pinned else ""}
    runs = [KeptRun(name=name, size_bytes=folder.size_bytes(name)) for name in folder.runs()]
    plan = rotation(runs, round(keep_gib * GIB), protected)
    for one in plan.deleted:
        folder.delete(one.name)
    told = []
    if plan.deleted:
        count = counted(len(plan.deleted), "old run")
        told.append(f"deleted: {count}, {plan.freed_bytes / GIB:.2f} GiB; their rows stay")
    if plan.left_bytes > keep_gib * GIB:
        told.append(
            f"the runs that must stay take {plan.left_bytes / GIB:.2f} GiB, more than the {keep_gib:g} GiB asked for"
        )
    return told


def _draw(folder: NightFolder, history: History) -> Path:
    from specbench.render.nightly import page
    from specbench.render.plots.canvas import drawn
    from specbench.render.plots.history import plots

    held = {one.run for one in history.nights if folder.holds(one)}
    pinned = folder.pinned()
    return folder.write_page(page.render(history, list(drawn(plots(history))), held, str(pinned) if pinned else None))
