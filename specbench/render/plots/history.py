"""tok/s and acceptance length night by night: a strip a variant, with its change points."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from specbench.analysis.dossier import Traits
from specbench.analysis.history.changes import ChangePoint, change_points
from specbench.nights import GOOD, Figures, History, Night
from specbench.render import words
from specbench.render.comparison import words as said
from specbench.render.nightly.words import date, status
from specbench.render.plots import WIDE_IN, Plot
from specbench.render.plots.axes import FONT_PT, Place, axes_in, name_axes
from specbench.render.plots.identity import Look, looks_of
from specbench.render.plots.palette import ALARM, INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_COUNT: Final = 90
"""Nights, the newest."""
STRIP_IN: Final = 1.05
NO_CHANGE: Final = "No change point."
FEW_COUNT: Final = 8
"""Nights up to which each is named below the strips."""
Value = Callable[[Figures], float | None]


class Strips(Struct, frozen=True, kw_only=True):
    """One metric of all variants."""

    slug: str
    title: str
    metric: str
    """As a comparison names it."""
    meaning: str
    value: Value


METRICS: Final = (
    Strips(
        slug="history-rate",
        title="Output tok/s, night by night",
        metric="output_tps",
        meaning="output tokens a second",
        value=lambda one: one.output_tps,
    ),
    Strips(
        slug="history-length",
        title="Acceptance length, night by night",
        metric="accept_length",
        meaning="tokens a verify step",
        value=lambda one: one.accept_length,
    ),
)


def plots(history: History) -> Iterator[Plot]:
    """Of the newest nights; only for what was measured."""
    nights = history.nights[-SHOWN_COUNT:]
    for strips in METRICS:
        series = {name: one for name, one in series_of(nights, strips.value).items() if any(one)}
        if series:
            yield _plot(strips, nights, series, len(history.nights))


def series_of(nights: Sequence[Night], value: Value) -> dict[str, list[float | None]]:
    """One value a night and variant; None where it was not measured."""
    names = dict.fromkeys(one.variant for night in reversed(nights) for one in night.figures)
    found = [{one.variant: value(one) for one in night.figures} for night in nights]
    return {name: [one.get(name) for one in found] for name in names}


def _plot(strips: Strips, nights: Sequence[Night], series: Mapping[str, Sequence[float | None]], night_count: int) -> Plot:
    changes = {name: change_points(values) for name, values in series.items()}
    newest = f"The newest {len(nights)} of {night_count} nights. " if len(nights) < night_count else ""
    stamp = " · SIMULATED" if any(one.simulated for one in nights) else ""
    dots = "Filled: a good night; hollow: not one; cross: this figure was worse than the margin, or the night failed to run"
    return Plot(
        slug=strips.slug,
        section="history",
        title=f"{strips.title}{stamp}",
        description=(
            f"{newest}Each strip is a variant: {strips.meaning}, geometric mean over its levels and launches. {dots}. "
            "Strips begin above 0, so that small changes show. A broken vertical line is a change point."
        ),
        remark=" ".join(_told(name, points, nights) for name, points in changes.items() if points) or NO_CHANGE,
        headings=("night", "outcome", *map(words.clean, series)),
        rows=tuple(_row(place, night, series) for place, night in enumerate(nights)),
        width_in=WIDE_IN,
        height_in=1.0 + STRIP_IN * len(series),
        draw=lambda figure: _draw(figure, strips, nights, series, changes),
    )


def _row(place: int, night: Night, series: Mapping[str, Sequence[float | None]]) -> tuple[str, ...]:
    figures = (words.length(values[place]) for values in series.values())
    return date(night), status(night), *figures


def _told(name: str, points: Sequence[ChangePoint], nights: Sequence[Night]) -> str:
    found = ", ".join(f"{said.percent(one.change_ratio)} from {date(nights[one.night_index])}" for one in points)
    return f"{words.clean(name)} changed: {found}."


def _draw(
    figure: "Figure",
    strips: Strips,
    nights: Sequence[Night],
    series: Mapping[str, Sequence[float | None]],
    changes: Mapping[str, Sequence[ChangePoint]],
) -> None:
    baseline = next((one.variant for night in reversed(nights) for one in night.figures if one.is_baseline), "")
    traits = [
        Traits(variant=one, drafter=None, draft_tokens=None, cuda_graph=None, longest_accept_tokens=None) for one in series
    ]
    looks = looks_of(traits, baseline)
    for place, (name, values) in enumerate(series.items()):
        top_in, bottom_in = 0.45 + STRIP_IN * place, 0.6 + STRIP_IN * (len(series) - 1 - place)
        axes = axes_in(figure, Place(left_in=2.3, right_in=0.25, top_in=top_in, bottom_in=bottom_in))
        crosses = {
            at for at, night in enumerate(nights) if night.status == "failed" or _is_worse(night, name, strips.metric)
        }
        _strip(axes, looks[name], nights, values, crosses)
        _mark_changes(axes, changes[name], values)
        axes.set_xlim(-0.6, len(nights) - 0.4)
        last = place == len(series) - 1
        _ticks(axes, nights if last else ())
        if last:
            name_axes(axes, "night (UTC)")


def _is_worse(night: Night, variant: str, metric: str) -> bool:
    return any((one.variant, one.metric) == (variant, metric) for one in night.worse)


def _strip(
    axes: "Axes", shown: Look, nights: Sequence[Night], values: Sequence[float | None], crosses: Collection[int]
) -> None:
    told = [(place, value) for place, value in enumerate(values) if value is not None]
    axes.plot(*zip(*told, strict=True), color=shown.color, linewidth=1.0, alpha=0.6)
    low, high = min(value for _, value in told), max(value for _, value in told)
    room = max(0.35 * (high - low), 0.02 * high)
    axes.set_ylim(low - room, high + room)
    for place, value in told:
        fill = shown.color if nights[place].status in GOOD else PAPER
        if place not in crosses:
            axes.plot(
                [place], [value], marker="o", color=shown.color, markerfacecolor=fill, markersize=4.5, linestyle="none"
            )
    for place in crosses:
        seen = values[place]
        axes.plot([place], [low - 0.6 * room if seen is None else seen], marker="X", color=ALARM, markersize=7)
    axes.text(
        -0.09, 0.5, shown.label, transform=axes.transAxes, ha="right", va="center", color=shown.color, fontsize=FONT_PT
    )
    axes.locator_params(axis="y", nbins=4)


def _mark_changes(axes: "Axes", points: Sequence[ChangePoint], values: Sequence[float | None]) -> None:
    for one in points:
        axes.axvline(one.night_index - 0.5, color=INK, linestyle="--", linewidth=1.0)
        right = one.night_index > 0.85 * len(values)
        axes.annotate(
            said.percent(one.change_ratio),
            (one.night_index - 0.5, 1.0),
            (-4 if right else 4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top",
            fontsize=FONT_PT,
            color=INK,
        )


def _ticks(axes: "Axes", nights: Sequence[Night]) -> None:
    """Named below the last strip only; not every one of many."""
    step = 1 if len(nights) <= FEW_COUNT else -(-len(nights) // FEW_COUNT)
    places = range(len(nights) - 1, -1, -step)
    days = [date(nights[place]) for place in places]
    several = len({one[:10] for one in days}) < len(days)
    axes.set_xticks(list(places), [one[5:] if several else one[5:10] for one in days])
    axes.tick_params(axis="x", labelcolor=MUTED)
