"""The page of a suite's nights: how the last one ended, the history with its change points, every night, what to do."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from specbench.nights import History, Night
from specbench.render import words
from specbench.render.html.document import banner, document, section
from specbench.render.html.figures import figure
from specbench.render.html.markup import Content, Markup, element, joined, prose
from specbench.render.html.table import table
from specbench.render.nightly import words as said
from specbench.render.plots import Drawing
from specbench.render.plots.history import NO_CHANGE
from specbench.units import counted

NAVIGATION: Final = (("verdict", "Last night"), ("history", "History"), ("nights", "Every night"), ("advice", "What to do"))
COLORS: Final = {
    "pass": "good",
    "fail": "bad",
    "failed": "bad",
    "inconclusive": "doubt",
    "refused": "doubt",
    "first": "plain",
    "running": "plain",
}
SHOWN_COUNT: Final = 60
"""Nights in the table; older ones are folded."""
ADVICE: Final = {
    "fail": "Look at what changed since the reference: the engine's version, the driver, the machine. "
    "If the change is meant, pin this run: `specbench nightly SUITE --pin RUN`.",
    "failed": "Look at the sentences above and at the run's server.log. The next night begins anew.",
    "refused": "Declare what may differ with `--factor KEY`, or pin tonight's run as the new reference: "
    "`specbench nightly SUITE --pin RUN`.",
    "inconclusive": "Ask for more `launches` in the suite, or for a wider `--margin`; `specbench calibrate SUITE` says "
    "which change can be seen here.",
    "first": "From tomorrow on there is something to compare with.",
}
LOOK_BACK: Final = (
    "The history holds change points. Where one is a loss that passed night by night, pin a run from before it: "
    "`specbench nightly SUITE --pin RUN`."
)
CHANGES: Final = (
    "A change point is where a series splits into two that differ more than hardly any shuffled series would (E-divisive "
    "means, p ≤ 0.005, shifts of 1 % and more, from 10 nights on). It is advice: it also sees creeping losses that pass "
    "every night, and it never decides how a night ends."
)


def render(history: History, drawings: Sequence[Drawing], held: Collection[str], pinned: str | None) -> str:
    """`drawings`: of `plots.history.plots(history)`; `held`: runs that are still on the disk; `pinned`: the reference."""
    last = history.nights[-1]
    body = [_verdict(last, history, pinned), _history(drawings), _nights(history, held), _advice(last, drawings)]
    made = "Made by specbench from the history of these nights; this file loads nothing from anywhere."
    header, main = _header(history, last), element("main", joined(body), id="main")
    footer = element("footer", element("p", made, class_="quiet"))
    return document(said.title(history.suite_name, last), joined([header, main, footer]))


def _header(history: History, last: Night) -> Markup:
    links = [element("li", element("a", name, href=f"#{slug}")) for slug, name in NAVIGATION]
    stamp = words.banner(last.simulated, None)
    count = counted(len(history.nights), "night")
    parts = [
        element("a", "To the last night", href="#main", class_="skip"),
        element("h1", said.title(history.suite_name, last)),
        element("p", " · ".join((count, f"the last began {said.date(last)} UTC", *last.engines)), class_="quiet"),
        *([banner(stamp)] if stamp else []),
        element("nav", element("ul", *links), aria_label="Parts of this page"),
    ]
    return element("header", joined(parts))


def _tag(night: Night) -> Markup:
    return element("span", said.status(night), class_=f"tag {COLORS[night.status]}")


def _verdict(last: Night, history: History, pinned: str | None) -> Markup:
    parts = [element("p", _tag(last), class_="lead")]
    parts.append(element("ul", joined([element("li", prose(one)) for one in last.headlines])))
    if last.reference:
        how = "pinned" if last.pinned else "the last good night before it"
        parts.append(element("p", f"A, which it was compared with: {last.reference} ({how}).", class_="quiet"))
    good = history.last_good
    parts.append(element("p", _next(good, pinned), class_="quiet"))
    return section("verdict", "Last night", *parts)


def _next(good: Night | None, pinned: str | None) -> str:
    if pinned is not None:
        return f"The next night is compared with the pinned run {pinned}."
    if good is None:
        return "The next night has nothing to compare with yet."
    return f"The next night is compared with {good.run}, the last good one."


def _history(drawings: Sequence[Drawing]) -> Markup:
    if not drawings:
        return section("history", "History", element("p", "Nothing was measured yet."))
    figures = element("div", joined([figure(one) for one in drawings]), class_="gallery")
    return section("history", "History", element("p", CHANGES, class_="quiet"), figures)


def _nights(history: History, held: Collection[str]) -> Markup:
    newest = history.nights[::-1]
    shown, older = newest[:SHOWN_COUNT], newest[SHOWN_COUNT:]
    hint = element("p", "A heading sorts its table, again the other way round.", class_="quiet hint", hidden=True)
    parts = [hint, _table("Every night, the newest first", shown, held)]
    if older:
        inner = _table("Older nights", older, held)
        parts.append(element("details", element("summary", counted(len(older), "older night")), inner, class_="more"))
    return section("nights", "Every night", *parts)


def _table(caption: str, nights: Sequence[Night], held: Collection[str]) -> Markup:
    stamp = " · SIMULATED" if any(one.simulated for one in nights) else ""
    variants = list(dict.fromkeys(one.variant for night in nights for one in night.figures))
    headings = ["night", "outcome", "what was said"]
    headings += [heading for name in variants for heading in (f"{name} tok/s", f"{name} AL")]
    rows = [[*_told(night, held), *_figures(night, variants)] for night in nights]
    kept = [place for place in range(len(headings)) if place < 3 or any(row[place] != words.NOTHING for row in rows)]
    drawn = table(
        f"{caption}{stamp}",
        [headings[place] for place in kept],
        [[row[place] for place in kept] for row in rows],
        numeric=[place >= 3 for place in kept],
        sortable=True,
    )
    return Markup(drawn.replace('class="scroll"', 'class="scroll tall nights"', 1))


def _told(night: Night, held: Collection[str]) -> Iterator[Content]:
    there = night.run in held
    yield element("a", said.date(night), href=f"{night.run}/report.html") if there else said.date(night)
    yield _tag(night)
    worse = "; ".join(map(said.worse, night.worse))
    yield worse or prose(said.summary(night))


def _figures(night: Night, variants: Sequence[str]) -> Iterator[str]:
    found = {one.variant: one for one in night.figures}
    for name in variants:
        one = found.get(name)
        yield words.rate(one.output_tps if one else None)
        yield words.length(one.accept_length if one else None)


def _advice(last: Night, drawings: Sequence[Drawing]) -> Markup:
    parts = [element("p", prose(ADVICE.get(last.status, "Nothing about the last night: it passed.")))]
    if any(one.plot.remark != NO_CHANGE for one in drawings):
        parts.append(element("p", prose(LOOK_BACK)))
    return section("advice", "What to do", *parts)
