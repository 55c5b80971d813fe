"""Each launch from its start to its end: start-up, load levels, and what the GPUs said meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from specbench.analysis.dossier import Launch
from specbench.analysis.telemetry import Series
from specbench.render import words
from specbench.render.plots import WIDE_IN, Plot
from specbench.render.plots.axes import FONT_PT, Place, axes_in, name_axes, rows_height_in, rows_in
from specbench.render.plots.identity import Look, Looks, look, short
from specbench.render.plots.palette import ALARM, DASHES, INK, PAPER, PHASES, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS_COUNT = 25
"""Launches in one figure."""
LEGEND_COUNT = 8
"""Names above the rows; the table has all."""
LETTER_IN = 0.075
"""Width of a letter, about."""


def plots(launches: Sequence[Launch], looks: Looks, stamp: str) -> Iterator[Plot]:
    """All launches below each other, then one a launch that has telemetry."""
    colors = _workload_colors(launches)
    parts = [launches[place : place + ROWS_COUNT] for place in range(0, len(launches), ROWS_COUNT)]
    for index, part in enumerate(parts):
        which = f", {index + 1} of {len(parts)}" if len(parts) > 1 else ""
        yield _overview(f"timeline-{index + 1}", f"Launches from start to end{which}{stamp}", part, (colors, looks))
    for index, launch in enumerate(launches):
        if launch.telemetry:
            yield _telemetry(f"telemetry-{index + 1}", f"GPUs · {words.clean(launch.name)}{stamp}", launch)


def _workload_colors(launches: Sequence[Launch]) -> dict[str, str]:
    names = dict.fromkeys(one.workload for launch in launches for one in launch.spans if one.kind == "level")
    return {name: SERIES[place % len(SERIES)] for place, name in enumerate(names)}


def _overview(slug: str, title: str, launches: Sequence[Launch], told: tuple[Mapping[str, str], Looks]) -> Plot:
    failed = [words.clean(one.name) for one in launches if one.failure]
    return Plot(
        slug=slug,
        section="timeline",
        title=title,
        description="Seconds since each launch began. Grey: start-up, phase by phase; coloured: load, level by level, with "
        "its workload and streams; a cross: the launch failed.",
        remark=f"Failed: {', '.join(failed)}." if failed else "No launch failed.",
        headings=("launch", "part", "from, s", "to, s"),
        rows=tuple(
            (words.clean(launch.name), words.clean(span.name), f"{span.begin_s:.2f}", f"{span.end_s:.2f}")
            for launch in launches
            for span in launch.spans
        ),
        width_in=WIDE_IN,
        height_in=rows_height_in(len(launches)),
        draw=lambda figure: _draw_overview(figure, launches, *told),
    )


def _draw_overview(figure: "Figure", launches: Sequence[Launch], colors: Mapping[str, str], looks: Looks) -> None:
    several = any(one.launch_index for one in launches)
    shown = [_named(look(looks, one.variant), one, several) for one in launches]
    axes = rows_in(figure, Place(left_in=1.9, right_in=0.3), shown)
    longest_s = max((one.ended_s for one in launches), default=0.0) or 1.0
    axes.set_xlim(0, longest_s * 1.02)
    inches_per_s = (WIDE_IN - 2.2) / (longest_s * 1.02)
    for row, launch in enumerate(launches):
        _draw_spans(axes, row, launch, colors, inches_per_s)
        if launch.failure:
            axes.plot([max(launch.ended_s, 0.012 * longest_s)], [row], marker="X", color=ALARM, markersize=8, clip_on=False)
    name_axes(axes, "seconds since the launch began")
    _legend(figure, colors)


def _legend(figure: "Figure", colors: Mapping[str, str]) -> None:
    """What has which colour, on the line of the title, from the right."""
    width_in, height_in = figure.get_size_inches()
    right_in = width_in - 0.3
    for name, color in reversed(list(colors.items())[:LEGEND_COUNT]):
        text = short(name, 14)
        figure.text(
            right_in / width_in,
            1 - 0.14 / height_in,
            f"■ {text}",
            fontsize=FONT_PT,
            color=color,
            ha="right",
            va="top",
        )
        right_in -= LETTER_IN * (len(text) + 4)


def _named(one: Look, launch: Launch, several: bool) -> Look:
    label = f"{short(launch.variant, 22)} #{launch.launch_index + 1}" if several else one.label
    return Look(color=one.color, marker=one.marker, dashes=one.dashes, label=label)


def _draw_spans(axes: "Axes", row: int, launch: Launch, colors: Mapping[str, str], inches_per_s: float) -> None:
    phase_count = 0
    for span in launch.spans:
        phase_count += span.kind == "phase"
        color = PHASES[phase_count % 2] if span.kind == "phase" else colors[span.workload]
        width_s = span.end_s - span.begin_s
        axes.barh([row], [width_s], left=[span.begin_s], height=0.66, color=color, edgecolor=PAPER, linewidth=0.7)
        for text in (short(span.name), span.name.rpartition(" at ")[2]):
            if len(text) * LETTER_IN < width_s * inches_per_s and (span.kind == "phase" or text):
                ink = INK if span.kind == "phase" else PAPER
                axes.text(span.begin_s + width_s / 2, row, text, ha="center", va="center", fontsize=FONT_PT - 1, color=ink)
                break


def _telemetry(slug: str, title: str, launch: Launch) -> Plot:
    quantities = list(dict.fromkeys(one.quantity for one in launch.telemetry))
    gpus = list(dict.fromkeys(one.gpu for one in launch.telemetry))
    return Plot(
        slug=slug,
        section="timeline",
        title=title,
        description=f"What the driver told of {', '.join(quantities)}, a line a GPU "
        f"({', '.join(map(words.clean, gpus))}). "
        "Grey ground: load. A clock that falls while the temperature stands at its limit is a GPU that throttles.",
        headings=("GPU", "quantity", "unit", "lowest", "mean", "highest", "readings drawn"),
        rows=tuple(_telemetry_row(one) for one in launch.telemetry),
        width_in=WIDE_IN,
        height_in=0.95 + 1.15 * len(quantities),
        draw=lambda figure: _draw_telemetry(figure, launch, quantities, gpus),
    )


def _telemetry_row(one: Series) -> tuple[str, ...]:
    values = [value for _, value in one.points]
    figures = (f"{value:.1f}" for value in (min(values), sum(values) / len(values), max(values)))
    return (words.clean(one.gpu), one.quantity, one.unit, *figures, str(len(values)))


def _draw_telemetry(figure: "Figure", launch: Launch, quantities: Sequence[str], gpus: Sequence[str]) -> None:
    _legend(figure, {f"GPU {name}": SERIES[number % len(SERIES)] for number, name in enumerate(gpus)})
    for place, quantity in enumerate(quantities):
        bottom_in = 0.52 + 1.15 * (len(quantities) - 1 - place)
        height_in = float(figure.get_size_inches()[1])
        axes = axes_in(figure, Place(left_in=0.8, bottom_in=bottom_in, top_in=height_in - bottom_in - 0.95))
        axes.set_xlim(0, launch.ended_s or 1.0)
        for span in launch.spans:
            if span.kind == "level":
                axes.axvspan(span.begin_s, span.end_s, color=PHASES[1], alpha=0.4, linewidth=0)
        for one in launch.telemetry:
            if one.quantity == quantity:
                number = gpus.index(one.gpu)
                axes.plot(
                    *zip(*one.points, strict=True),
                    color=SERIES[number % len(SERIES)],
                    linestyle=DASHES[number // len(SERIES) % len(DASHES)],
                    linewidth=1.1,
                )
        unit = next(one.unit for one in launch.telemetry if one.quantity == quantity)
        last = place == len(quantities) - 1
        name_axes(axes, "seconds since the launch began" if last else "", f"{quantity}, {unit}")
