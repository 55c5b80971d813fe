"""What is said of a night. All forms and the page say the same."""

from typing import Final

from specbench.analysis.comparing import Comparison
from specbench.nights import Night, Worse
from specbench.render import words
from specbench.render.comparison import words as said

STATUSES: Final = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE",
    "refused": "NOT COMPARABLE",
    "failed": "FAILED TO RUN",
    "first": "FIRST NIGHT",
    "running": "RUNNING",
}
UNFIT: Final = "No later night could be compared with this one, so it does not become the reference:"
FIRST: Final = "There was no reference to compare with; this night becomes it."


def status(night: Night) -> str:
    """`FAIL`."""
    return STATUSES[night.status]


def headlines(comparison: Comparison) -> tuple[str, ...]:
    """A sentence a variant, the worst first, each refusal with its reasons."""
    return tuple(
        line
        for variant in said.ranked(comparison)
        for line in (said.headline(variant, comparison.margin_ratio), *said.refusals(variant))
    )


def summary(night: Night) -> str:
    """One line for a table. A headline that only announces reasons takes the first of them with it."""
    if not night.headlines:
        return ""
    first, *others = night.headlines
    return f"{first} {others[0]}" if first.endswith(":") and others else first


def worse(one: Worse) -> str:
    """`eagle-d4: tok/s −4.9 %`."""
    return f"{words.clean(one.variant)}: {said.label(one.metric)} {said.percent(one.change_ratio)}"


def title(suite_name: str, night: Night) -> str:
    """`specbench nightly · kimi · SIMULATED`."""
    return f"specbench nightly · {words.clean(suite_name)}{' · SIMULATED' if night.simulated else ''}"


def date(night: Night) -> str:
    """`2026-11-29 23:30`."""
    return words.clean(night.started_utc)[:16].replace("T", " ")
