"""What `plan` prints: an outlook as text of at most 100 columns, and as JSON."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from typing import Final

import msgspec

from specbench.cli.outlook import Outlook, PlannedLaunch
from specbench.suite import Workload
from specbench.suite.secrets import HIDDEN
from specbench.units import Second, counted

WIDTH: Final = 100
LABEL_WIDTH: Final = 11
INDENT: Final = "    "
FLAG: Final = re.compile(r"--?[A-Za-z]")


def outlook_json(outlook: Outlook) -> str:
    """One JSON document: the resolved suite, the launches in order, the estimate."""
    suite = outlook.plan.suite
    document = {
        "suite": suite,
        "simulated": outlook.rehearsal is not None,
        "rehearsal": outlook.rehearsal,
        "launches": outlook.launches,
        "servers_at_once_count": outlook.servers_count,
        "estimate_s": outlook.estimate_s,
        "gpu_hours": outlook.gpu_hours,
        "cost": outlook.cost,
        "assumed": suite.expected,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def outlook_text(outlook: Outlook) -> str:
    """Header, then every launch in order."""
    return "\n".join([*_header(outlook), *_launches(outlook), ""])


def _header(outlook: Outlook) -> Iterator[str]:
    suite = outlook.plan.suite
    if outlook.rehearsal is not None:
        yield from _row("SIMULATED", f"a rehearsal against the simulated engine, with {outlook.rehearsal}")
    yield from _row("suite", f"{suite.name} ({suite.path})")
    yield from _row("model", suite.model.path + (f" at {suite.model.revision}" if suite.model.revision else ""))
    yield from _row("baseline", suite.baseline)
    for index, workload in enumerate(suite.workloads):
        yield from _row(
            "" if index else "workloads",
            f"{workload.name}: {_asked(workload)}{_offered(workload)} requests; "
            f"at most {counted(workload.max_output_tokens, 'output token')}",
        )
    yield from _row("launches", _order(outlook))
    source = "from the suite's `expected`" if outlook.rehearsal is None else "for the simulated engine"
    yield from _row(
        "estimate",
        f"{_span(outlook.estimate_s)}, a guess {source}: {suite.expected.startup_s:g} s until a "
        f"server is ready, {suite.expected.per_user_tps:g} tok/s for each stream, every answer at full length",
    )
    if outlook.gpu_hours and outlook.rehearsal is None:
        yield from _row("GPUs", _gpu_hours(outlook))
    if outlook.narrowed:
        yield from _row("note", outlook.narrowed)
    for note in _version_notes(outlook):
        yield from _row("note", note)


def _gpu_hours(outlook: Outlook) -> str:
    """`1.5 GPU-hours held by launches, by the same guess; 3.00 at 2 an hour`."""
    text = f"{outlook.gpu_hours:.2f} GPU-hours held by launches, by the same guess"
    price = outlook.plan.suite.hardware.gpu_hour_price
    return text if price is None or outlook.cost is None else f"{text}; cost {outlook.cost:.2f} at {price:g} an hour"


def _pace(outlook: Outlook) -> str:
    jobs = {one.job_index for one in outlook.launches} - {None}
    if jobs:
        kind = "a block's arms share a job" if outlook.plan.suite.slurm.allocation == "block" else "one a launch"
        return f"in {len(jobs)} {'job' if len(jobs) == 1 else 'jobs'} of Slurm ({kind}), as many at once as it allows"
    return "one after another" if outlook.servers_count == 1 else f"{outlook.servers_count} side by side"


def _order(outlook: Outlook) -> str:
    suite = outlook.plan.suite
    count = len(suite.variants)
    text = f"{len(outlook.launches)}, {_pace(outlook)}: {counted(count, 'variant')} × {suite.launches}"
    alone_count = sum(one.trial.alone for one in outlook.launches)
    text += f", and {alone_count} of them alone as well (packing: control)" if alone_count else ""
    if suite.packing != "off":
        text += "; packed, the widest first"
    if suite.launches == 1:
        return text + ("" if suite.packing != "off" else ", in the file's order")
    return text + f"; in blocks of one launch a variant, every second block in reverse, seed {suite.seed}"


def _version_notes(outlook: Outlook) -> Iterator[str]:
    """One sentence for each engine and interpreter."""
    seen: set[tuple[str, str]] = set()
    for launch in outlook.launches:
        where = (launch.engine_title, launch.variant.server.python or "this Python")
        if not launch.launches or where in seen:
            continue
        seen.add(where)
        if outlook.rehearsal is not None:
            yield f"{launch.engine_title} {launch.engine_version} is imitated"
        elif launch.engine_version is None:
            yield f"{where[0]} is not installed for {where[1]}: the flags shown are those that its known versions share"
        else:
            yield f"{where[0]} {launch.engine_version} in {where[1]}"


def _asked(workload: Workload) -> str:
    """`jsonl prompts from x.jsonl (chat, code); `, and whatever is not as usual; empty where all is."""
    usual = workload.dataset == "builtin" and workload.categories in ((), (workload.name,))
    words = [] if usual else [f"{workload.dataset} prompts"]
    words += [f"from {workload.path}"] if workload.path else []
    words += [f"({', '.join(workload.categories)})"] if workload.categories and not usual else []
    words += ["as raw text"] if workload.api == "generate" else []
    words += [f"thinking {'on' if workload.thinking else 'off'}"] if workload.thinking is not None else []
    words += ["past their end (ignore_eos)"] if workload.ignore_eos else []
    return " ".join(words) + "; " if words else ""


def _offered(workload: Workload) -> str:
    """`concurrency 1, 8; 4, 32`, or `open loop, poisson at 2/s; 120`: requests follow."""
    arrival = workload.arrival
    if arrival is None:
        levels = ", ".join(str(one) for one in workload.concurrency)
        counts = ", ".join(str(workload.level_request_count(one)) for one in workload.concurrency)
        until = ", until goodput stops growing" if workload.saturate else ""
        return f"concurrency {levels}{until}; {counts}"
    if arrival.trace is not None:
        return f"open loop, times from {arrival.trace}; {arrival.count or 'all its'}"
    until = ", unless goodput stopped growing before" if workload.saturate else ""
    return f"open loop, {arrival.process} at {arrival.rate_rps:g}/s{until}; {arrival.count}"


def _launches(outlook: Outlook) -> Iterator[str]:
    shown: dict[str, int] = {}
    for number, launch in enumerate(outlook.launches, 1):
        yield ""
        yield from _heading(outlook, number, launch)
        first = shown.setdefault(launch.trial.variant, number)
        if first != number:
            yield f"{INDENT}(the command of {first}/{len(outlook.launches)})"
        elif launch.argv:
            yield from _command(launch)
            if launch.nodes_count > 1:
                words = " and ".join(("its own --node-rank", *launch.added_flags))
                yield f"{INDENT}(and so on every further node, with {words})"


def _heading(outlook: Outlook, number: int, launch: PlannedLaunch) -> Iterator[str]:
    total = outlook.plan.suite.launches
    parts = [f"{number}/{len(outlook.launches)}  {launch.trial.variant}"]
    if total > 1:
        parts.append(f"launch {launch.trial.launch_index + 1} of {total}")
    if launch.launches:
        parts += ["alone"] if launch.trial.alone else []
        parts += [_job(outlook, launch)] if launch.job_index is not None else [_gpus(launch.slot.gpu_ids)]
        parts.append(f"port {launch.slot.port} (leased at run)")
    else:
        parts.append(f"already served at {launch.variant.server.url}")
    parts.append(_span(launch.estimate_s))
    if launch.start_s is not None and outlook.servers_count > 1:
        parts.append(f"begins after {_span(launch.start_s)}" if launch.start_s else "begins at once")
    if outlook.rehearsal is not None:
        parts.append("SIMULATED")
    yield from textwrap.wrap(" · ".join(parts), WIDTH, subsequent_indent=INDENT, break_on_hyphens=False)


def _command(launch: PlannedLaunch) -> Iterator[str]:
    """One flag a line, so that it can be read, and pasted into a shell as it is."""
    lines = _environment(launch)
    words = list(launch.argv)
    start = next((index for index, word in enumerate(words) if index > 2 and FLAG.match(word)), len(words))
    lines.append(shlex.join(words[:start]))
    for word in words[start:]:
        if FLAG.match(word):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += " " + shlex.quote(word)
    yield from textwrap.indent(" \\\n".join(lines), INDENT * 2)[len(INDENT) :].splitlines()


def _environment(launch: PlannedLaunch) -> list[str]:
    removed = " ".join(f"-u {shlex.quote(name)}" for name in launch.unset)
    added = [f"{name}={_value(name, value)}" for name, value in launch.env.items()]
    return [f"env {removed}", *added] if removed else added


def _value(name: str, value: str) -> str:
    """A secret is taken from the shell into which the command is pasted."""
    return f'"${name}"' if value == HIDDEN else shlex.quote(value)


def _job(outlook: Outlook, launch: PlannedLaunch) -> str:
    """`job 2: 2 nodes × 8 GPUs`."""
    gpus = len(launch.slot.gpu_ids)
    held = f"{gpus} {'GPU' if gpus == 1 else 'GPUs'}" if gpus else "no GPU"
    return f"job {(launch.job_index or 0) + 1}: " + (
        f"{launch.nodes_count} nodes × {held}" if launch.nodes_count > 1 else held
    )


def _gpus(gpu_ids: tuple[int, ...]) -> str:
    if not gpu_ids:
        return "no GPU"
    return f"GPU {gpu_ids[0]}" if len(gpu_ids) == 1 else f"GPUs {gpu_ids[0]}–{gpu_ids[-1]}"


def _span(seconds: Second) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"about {round(seconds)} s"
    return f"about {minutes} min" if minutes < 120 else f"about {minutes // 60} h {minutes % 60:02d} min"


def _row(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=label.ljust(LABEL_WIDTH), subsequent_indent=" " * LABEL_WIDTH, break_on_hyphens=False
    )
