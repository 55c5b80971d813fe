"""The page of one run: verdict, table, plots, launches, parity, findings, environment, commands."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Final

from specbench.analysis import Judgement, Summary
from specbench.analysis.dossier import Dossier
from specbench.render import prose, tables, words
from specbench.render.html.account import commands, environment, failures, findings, parity
from specbench.render.html.document import banner, document, section
from specbench.render.html.figures import figure
from specbench.render.html.markup import Markup, element, joined, text
from specbench.render.html.markup import prose as prose_of
from specbench.render.html.outcome import outcome_section
from specbench.render.html.table import table
from specbench.render.plots import Drawing
from specbench.render.plots.identity import is_by_traits, looks_of
from specbench.render.tables import Column

NAVIGATION: Final = (
    ("verdict", "Verdict"),
    ("results", "Results"),
    ("break-even", "Break-even"),
    ("speed", "Speed"),
    ("acceptance", "Acceptance"),
    ("latency", "Latency"),
    ("timeline", "Launches"),
    ("parity", "Parity"),
    ("findings", "Findings"),
    ("environment", "Environment"),
    ("commands", "Commands"),
)
FIRST_COUNT: Final = {"break-even": 6, "latency": 2, "timeline": 4}
"""Plots of a section that are open from the start; all where none is said."""

COLOR_OF_VERDICT: Final = {
    "healthy": "good",
    "baseline": "plain",
    "slower_than_baseline": "bad",
    "dead_drafter": "bad",
    "failed": "bad",
    "speculation_inactive": "bad",
}
"""Others are doubts."""

LEADING: Final = (tables.VARIANT, tables.VERDICT, tables.WORKLOAD, tables.CONCURRENCY)


def render(dossier: Dossier, drawings: Iterable[Drawing]) -> str:
    """`drawings`: of `gallery.plots_of(dossier)`."""
    judgement = dossier.judgement
    galleries = _galleries(drawings)
    body = [
        outcome_section(judgement),
        _results(judgement),
        *_plots(dossier, galleries),
        _launches(dossier, galleries.get("timeline", [])),
        parity(dossier),
        findings(judgement),
        environment(dossier),
        commands(dossier),
    ]
    main = element("main", joined(body), id="main")
    return document(prose.title(judgement), joined([_header(judgement), main, _footer(judgement)]))


def _header(judgement: Judgement) -> Markup:
    stamp = words.banner(judgement.simulated, judgement.rehearsal)
    links = [element("li", element("a", name, href=f"#{slug}")) for slug, name in NAVIGATION]
    parts = (
        f"model {judgement.model}",
        ", ".join(judgement.engines) or "no engine was launched",
        f"baseline '{judgement.baseline}'",
        f"started {judgement.started_utc}",
        PurePath(judgement.run_folder).name,
    )
    return element(
        "header",
        joined(
            [
                element("a", "To the verdict", href="#main", class_="skip"),
                element("h1", prose.title(judgement)),
                element("p", " · ".join(parts), class_="quiet"),
                *([banner(stamp)] if stamp else []),
                *(banner(note) for note in judgement.notes),
                element("nav", element("ul", *links), aria_label="Parts of this page"),
            ]
        ),
    )


def _footer(judgement: Judgement) -> Markup:
    made = "Made by specbench from what the run stored; this file loads nothing from anywhere."
    return element("footer", element("p", tables.stamped(made, judgement), class_="quiet"))


def _results(judgement: Judgement) -> Markup:
    hint = element("p", "A heading sorts its table, again the other way round.", class_="quiet hint", hidden=True)
    shown: list[Column] = []
    parts: list[Markup] = [hint]
    if judgement.overview:
        columns = tables.telling((tables.VARIANT, tables.VERDICT, tables.CONCURRENCY, *_figures()), judgement.overview)
        parts.append(_table("Overview, all workloads pooled", judgement, judgement.overview, columns))
        shown += columns
    columns = tables.telling((*LEADING, *_figures()), judgement.summaries)
    parts.append(_table("Every workload and concurrency", judgement, judgement.summaries, columns))
    lines = [element("li", prose_of(line)) for line in tables.legend([*shown, *columns])]
    if words.no_request_failed(judgement):
        lines.append(element("li", "No request failed."))
    return section("results", tables.stamped("Results", judgement), *parts, element("ul", *lines, class_="legend"))


def _figures() -> Iterator[Column]:
    return (one for one in tables.EVERYTHING if one not in LEADING)


def _table(title: str, judgement: Judgement, rows: Sequence[Summary], columns: Sequence[Column]) -> Markup:
    cells = [[_verdict(row) if one is tables.VERDICT else one.of(row) for one in columns] for row in rows]
    drawn = table(
        tables.stamped(title, judgement),
        [_heading(one) for one in columns],
        cells,
        numeric=[one.numeric for one in columns],
        sortable=True,
    )
    return Markup(drawn.replace('class="scroll"', 'class="scroll tall"', 1))


def _heading(column: Column) -> str:
    """As the legend below the table names it."""
    return " ".join(filter(None, column.short)).replace("speed- up", "speed-up")


def _verdict(row: Summary) -> Markup:
    return element("span", words.verdict(row.verdict), class_=COLOR_OF_VERDICT.get(row.verdict, "doubt"))


def _galleries(drawings: Iterable[Drawing]) -> dict[str, list[Drawing]]:
    found: dict[str, list[Drawing]] = {}
    for one in drawings:
        found.setdefault(one.plot.section, []).append(one)
    return found


def _gallery(drawings: Sequence[Drawing]) -> Markup:
    told = [one.plot.description for one in drawings]
    figures = [figure(one, one.plot.description in told[:place]) for place, one in enumerate(drawings)]
    return element("div", joined(figures), class_="gallery")


EMPTY: Final = {
    "break-even": "There is nothing to draw: no variant has both an acceptance length and a speed-up.",
    "speed": "There is nothing to draw: no request ended well.",
    "acceptance": "No engine told how many draft tokens it accepted.",
    "latency": "There is nothing to draw: no request ended well.",
}


def _plots(dossier: Dossier, galleries: dict[str, list[Drawing]]) -> Iterator[Markup]:
    headings = dict(NAVIGATION)
    key = _key(dossier)
    for slug, nothing in EMPTY.items():
        drawings = galleries.get(slug, [])
        content = [key] if key and drawings else []
        if not drawings:
            content.append(element("p", nothing))
        else:
            content += _unfolded(slug, drawings)
        yield section(slug, tables.stamped(headings[slug], dossier.judgement), *content)


def _unfolded(slug: str, drawings: Sequence[Drawing]) -> Iterator[Markup]:
    """The first few; the others are folded away."""
    count = FIRST_COUNT.get(slug, len(drawings))
    yield _gallery(drawings[:count])
    if rest := drawings[count:]:
        word = "1 more" if len(rest) == 1 else f"{len(rest)} more"
        yield element("details", element("summary", word), _gallery(rest), class_="more")


def _key(dossier: Dossier) -> Markup | None:
    """What colours and markers mean, where they mean something."""
    baseline = dossier.judgement.baseline
    if not is_by_traits(looks_of(dossier.traits, baseline), dossier.traits, baseline):
        return None
    dashed = any(one.cuda_graph is False for one in dossier.traits)
    line = "Colour tells the drafter, the marker how many draft tokens; without colour: no speculation"
    return element("p", line + ("; dashed and hollow: CUDA graphs off." if dashed else "."), class_="quiet")


def _launches(dossier: Dossier, drawings: Sequence[Drawing]) -> Markup:
    silent = not any(one.telemetry for one in dossier.launches)
    parts = list(_unfolded("timeline", drawings)) if drawings else [element("p", "No launch was begun.")]
    if silent and dossier.launches:
        parts.append(element("p", text("There is no GPU telemetry in this run."), class_="quiet"))
    return section("timeline", tables.stamped("Launches", dossier.judgement), *parts, *failures(dossier.launches))
