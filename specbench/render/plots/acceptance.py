"""How much of the draft is accepted: by variant, by position, by category, over the run and over the answer."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from specbench.analysis import Part, Profile, Summary
from specbench.analysis.dossier import Dossier
from specbench.render import words
from specbench.render.plots import Plot
from specbench.render.plots.axes import (
    FONT_PT,
    LABEL_IN,
    Place,
    Tag,
    axes_in,
    name_axes,
    rows_height_in,
    rows_in,
    tag_in_margin,
)
from specbench.render.plots.grid import COLUMNS_COUNT, Field, Grid, draw_grid, height_in, width_in
from specbench.render.plots.identity import Looks, look
from specbench.render.plots.palette import MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POSITIONS_COUNT = 16
"""Drawn, at most; the table holds all."""
Parts = Callable[[Profile], Sequence[Part]]


def plots(dossier: Dossier, looks: Looks, stamp: str) -> Iterator[Plot]:
    """Those for which there is something to draw."""
    rows = [row for row in dossier.judgement.summaries if row.accept_length is not None]
    if rows:
        yield _by_variant(rows, looks, stamp)
    profiles = dossier.judgement.profiles
    if placed := [one for one in profiles if one.position_ratio]:
        yield _by_position(placed, looks, stamp)
    if any(len(one.categories) > 1 for one in profiles):
        yield _by_category(profiles, looks, stamp)
    yield from _over(profiles, looks, stamp)


def _by_variant(rows: Sequence[Summary], looks: Looks, stamp: str) -> Plot:
    variants = list(dict.fromkeys(row.variant for row in rows))
    lengths = {name: [row.accept_length or 0.0 for row in rows if row.variant == name] for name in variants}
    ceilings = {row.variant: row.longest_accept_tokens for row in rows}
    return Plot(
        slug="accept-length",
        section="acceptance",
        title=f"Acceptance length (AL) by variant{stamp}",
        description="Tokens a verify step, bonus token included; one mark for each level. At the dotted line, 1, no draft "
        "token was ever accepted. The bar | is the most that the draft's length allows, where it is in sight.",
        headings=("variant", "lowest AL", "highest AL", "levels", "at most"),
        rows=tuple(
            (
                words.clean(name),
                words.length(min(lengths[name])),
                words.length(max(lengths[name])),
                str(len(lengths[name])),
                str(ceilings[name] or words.NOTHING),
            )
            for name in variants
        ),
        height_in=rows_height_in(len(variants)),
        draw=lambda figure: _draw_by_variant(figure, lengths, ceilings, looks),
    )


def _draw_by_variant(
    figure: "Figure", lengths: dict[str, list[float]], ceilings: dict[str, int | None], looks: Looks
) -> None:
    shown = [look(looks, name) for name in lengths]
    axes = rows_in(figure, Place(left_in=1.9, right_in=0.95), shown)
    highest = max(max(values) for values in lengths.values())
    right = max(highest * 1.1, 2.0)
    axes.set_xlim(0.9, right)
    axes.axvline(1.0, color=MUTED, linewidth=1.2, linestyle=":")
    for place, ((name, values), one) in enumerate(zip(lengths.items(), shown, strict=True)):
        axes.plot([min(values), max(values)], [place, place], color=one.color, linewidth=1.2, linestyle=one.dashes)
        axes.plot(
            values,
            [place] * len(values),
            color=one.color,
            marker=one.marker,
            markerfacecolor=one.fill,
            linestyle="",
            markersize=5.5,
        )
        ceiling = ceilings[name]
        if ceiling is not None and ceiling <= right:
            axes.plot([ceiling], [place], color=MUTED, marker="|", markersize=11, markeredgewidth=1.6, clip_on=False)
        text = words.length(min(values))
        text += f" – {words.length(max(values))}" if words.length(max(values)) != text else ""
        axes.text(1.02, place, text, transform=axes.get_yaxis_transform(), va="center", fontsize=FONT_PT, color=one.color)
    name_axes(axes, "tokens a verify step")


def _by_position(profiles: Sequence[Profile], looks: Looks, stamp: str) -> Plot:
    longest = max(len(one.position_ratio) for one in profiles)
    shown = min(longest, POSITIONS_COUNT)
    fields = {
        (one.variant, str(place)): Field(level=share, text=words.percent(share))
        for one in profiles
        for place, share in enumerate(one.position_ratio[:shown], 1)
    }
    grid = Grid(
        rows=tuple(one.variant for one in profiles), columns=tuple(str(place + 1) for place in range(shown)), fields=fields
    )
    cut = f" The first {shown} of {longest} positions are drawn." if shown < longest else ""
    return Plot(
        slug="accept-position",
        section="acceptance",
        title=f"Draft tokens accepted by position, % of verify steps{stamp}",
        description="How often the first, second, … draft token was accepted. Positions near 0 cost time and give nothing: "
        f"fewer draft tokens would do.{cut}",
        headings=("variant", *(f"position {place}, %" for place in range(1, longest + 1))),
        rows=tuple(
            (
                words.clean(one.variant),
                *(words.percent(share) for share in one.position_ratio),
                *[words.NOTHING] * (longest - len(one.position_ratio)),
            )
            for one in profiles
        ),
        width_in=width_in(grid),
        height_in=height_in(grid),
        draw=lambda figure: draw_grid(figure, grid, looks),
    )


def _by_category(profiles: Sequence[Profile], looks: Looks, stamp: str) -> Plot:
    names = sorted({part.name for one in profiles for part in one.categories})
    fields = {
        (one.variant, part.name): Field(level=part.accept_length, text=words.length(part.accept_length))
        for one in profiles
        for part in one.categories
    }
    grid = Grid(rows=tuple(one.variant for one in profiles), columns=tuple(names), fields=fields)
    return Plot(
        slug="accept-category",
        section="acceptance",
        title=f"Acceptance length by category of prompt{stamp}",
        description="All levels pooled. Darker is higher; each field holds its figure.",
        remark=f"The first {COLUMNS_COUNT} of {len(names)} categories are drawn." if len(names) > COLUMNS_COUNT else "",
        headings=("variant", *map(words.clean, names)),
        rows=tuple(
            (words.clean(one), *(fields[one, name].text if (one, name) in fields else words.NOTHING for name in names))
            for one in grid.rows
        ),
        width_in=width_in(grid),
        height_in=height_in(grid),
        draw=lambda figure: draw_grid(figure, grid, looks),
    )


OVER: tuple[tuple[str, str, str, str, Parts], ...] = (
    (
        "accept-run",
        "Acceptance length over the run",
        "quarter of the run",
        "Requests in the order they were sent, in four parts; only categories that occur in each part. A line that falls "
        "means that the server or its load changed while it ran.",
        lambda one: one.quarters,
    ),
    (
        "accept-depth",
        "Acceptance length by depth into the answer",
        "output tokens before the step",
        "Long answers may be harder to guess than their beginning, or easier where they repeat themselves.",
        lambda one: one.depths,
    ),
)


def _over(profiles: Sequence[Profile], looks: Looks, stamp: str) -> Iterator[Plot]:
    for slug, title, across, description, parts in OVER:
        told = [one for one in profiles if len(parts(one)) > 1]
        if told:
            names = list(dict.fromkeys(part.name for one in told for part in parts(one)))
            yield Plot(
                slug=slug,
                section="acceptance",
                title=title + stamp,
                description=description,
                headings=("variant", *names),
                rows=tuple(_parts_row(one, parts, names) for one in told),
                height_in=max(3.3, 1.1 + LABEL_IN * len(told)),
                draw=_drawing_over(told, parts, names, across, looks),
            )


def _drawing_over(
    told: Sequence[Profile], parts: Parts, names: Sequence[str], across: str, looks: Looks
) -> Callable[["Figure"], None]:
    return lambda figure: _draw_over(figure, {one.variant: parts(one) for one in told}, names, across, looks)


def _parts_row(profile: Profile, parts: Parts, names: Sequence[str]) -> tuple[str, ...]:
    found = {part.name: words.length(part.accept_length) for part in parts(profile)}
    return (words.clean(profile.variant), *(found.get(name, words.NOTHING) for name in names))


def _draw_over(figure: "Figure", told: dict[str, Sequence[Part]], names: Sequence[str], across: str, looks: Looks) -> None:
    axes = axes_in(figure, Place(right_in=2.0))
    highest = max(part.accept_length for parts in told.values() for part in parts)
    axes.set_xlim(-0.2, len(names) - 0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(0.9, max(2.0, highest * 1.06))
    axes.axhline(1.0, color=MUTED, linewidth=1.2, linestyle=":")
    tags = []
    for name, parts in told.items():
        shown = look(looks, name)
        places = [names.index(part.name) for part in parts]
        lengths = [part.accept_length for part in parts]
        axes.plot(
            places,
            lengths,
            color=shown.color,
            marker=shown.marker,
            markerfacecolor=shown.fill,
            linestyle=shown.dashes,
            linewidth=1.5,
            markersize=4,
        )
        tags.append(Tag(x=places[-1], y=lengths[-1], look=shown))
    name_axes(axes, across, "AL, tokens a verify step")
    tag_in_margin(axes, tags)
