"""Latency distributions: TTFT and TPOT of the served requests, side by side."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from specbench.analysis.dossier import SHARES, Distribution, share_name
from specbench.render import words
from specbench.render.plots import WIDE_IN, Plot
from specbench.render.plots.axes import Place, fit_range, name_axes, rows_height_in, rows_in
from specbench.render.plots.identity import Looks, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = ("TTFT", "TPOT")
LEFT_IN = 1.9
GAP_IN = 0.25
PANEL_IN = (WIDE_IN - LEFT_IN - 2 * GAP_IN) / 2

DESCRIPTION = (
    "Left: time to the first chunk, from when the request was due (TTFT). Right: time a token after it (TPOT). Lower is "
    "better. Thin line: 5th to 95th percentile of the requests; thick: the middle half; marker: median; bar |: 99th "
    "percentile, which of fewer than 100 requests is hardly more than the largest."
)


def plots(distributions: Sequence[Distribution], looks: Looks, stamp: str) -> Iterator[Plot]:
    """One a level."""
    levels = dict.fromkeys((one.workload, one.concurrency) for one in distributions)
    for index, (workload, concurrency) in enumerate(levels):
        here = [one for one in distributions if (one.workload, one.concurrency) == (workload, concurrency)]
        yield _plot(f"latency-{index + 1}", f"Latency · {words.place(workload, concurrency)}{stamp}", here, looks)


def _plot(slug: str, title: str, here: Sequence[Distribution], looks: Looks) -> Plot:
    variants = list(dict.fromkeys(one.variant for one in here))
    return Plot(
        slug=slug,
        section="latency",
        title=title,
        description=DESCRIPTION,
        remark=" ".join(_lowest(here, metric) for metric in METRICS if any(one.metric == metric for one in here)),
        headings=("variant", "metric", *(f"{share_name(share)}, ms" for share in SHARES), "requests"),
        rows=tuple(_row(one) for one in here),
        width_in=WIDE_IN,
        height_in=rows_height_in(len(variants)),
        draw=lambda figure: _draw(figure, here, variants, looks),
    )


def _lowest(here: Sequence[Distribution], metric: str) -> str:
    best = min((one for one in here if one.metric == metric), key=_median_s)
    return f"Lowest median {metric}: {words.clean(best.variant)} with {words.milliseconds(_median_s(best))} ms."


def _median_s(one: Distribution) -> float:
    return one.quantiles_s[SHARES.index(0.5)]


def _row(one: Distribution) -> tuple[str, ...]:
    figures = (words.milliseconds(value) for value in one.quantiles_s)
    return (words.clean(one.variant), one.metric, *figures, str(one.request_count))


def _draw(figure: "Figure", here: Sequence[Distribution], variants: Sequence[str], looks: Looks) -> None:
    shown = [look(looks, name) for name in variants]
    for side, metric in enumerate(METRICS):
        left_in = LEFT_IN + side * (PANEL_IN + GAP_IN)
        place = Place(left_in=left_in, right_in=WIDE_IN - left_in - PANEL_IN)
        axes = rows_in(figure, place, shown, named=side == 0)
        name_axes(axes, f"{metric}, ms")
        told = [one for one in here if one.metric == metric]
        fit_range(axes, "x", [1000 * value for one in told for value in one.quantiles_s])
        for one in told:
            _draw_one(axes, one, variants.index(one.variant), looks)


def _draw_one(axes: "Axes", one: Distribution, row: int, looks: Looks) -> None:
    shown = look(looks, one.variant)
    low, lower, middle, upper, high, last = (1000 * value for value in one.quantiles_s)
    axes.plot([low, high], [row, row], color=shown.color, linewidth=1.2)
    axes.plot([lower, upper], [row, row], color=shown.color, linewidth=5, alpha=0.45, solid_capstyle="butt")
    axes.plot([last], [row], color=shown.color, marker="|", markersize=9, markeredgewidth=1.4)
    axes.plot([middle], [row], color=shown.color, marker=shown.marker, markerfacecolor=shown.fill, markersize=5.5)
