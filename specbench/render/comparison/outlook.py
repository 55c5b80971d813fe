"""A calibration for a terminal or a pipe: how far launches differ, and what can therefore be seen."""

from collections.abc import Mapping, Sequence

from specbench.analysis.comparing.calibrate import Calibration, Outlook
from specbench.render import words
from specbench.render.comparison import words as said
from specbench.units import counted

DRIFT_RATIO = 0.7
"""Neighbours this much more alike than all launches: the machine drifts."""


def render(calibration: Calibration, outlooks: Sequence[Outlook], enough: Mapping[str, int | None], margin: float) -> str:
    """Ends with a line break."""
    stamp = " · SIMULATED" if calibration.simulated else ""
    run, metrics = calibration.run, list(outlooks[0].detectable_ratio)
    lines = [
        f"specbench calibrate · {words.clean(calibration.suite_name)} on {words.clean(calibration.host)}{stamp}",
        f"{counted(run.launch_count, 'launch')} of '{words.clean(run.variant)}' ({words.clean(run.engine)})",
        words.clean(run.folder),
        "",
        "Standard deviation from launch to launch, all levels together",
        *(
            f"  {said.label(one.metric):<9} {said.percent(one.launch_sd_ratio, signed=False):>7}"
            for one in calibration.spreads
        ),
        "",
        f"Smallest change found {said.ENOUGH}, by pairs of launches (Holm over {len(metrics)} metrics)",
        "  pairs  " + "".join(f"{said.label(one):>10}" for one in metrics),
        *(_row(one, metrics) for one in outlooks),
        "",
        *_advice(enough, margin),
        *_drifts(calibration, metrics),
    ]
    return "\n".join(lines) + "\n"


def _row(outlook: Outlook, metrics: Sequence[str]) -> str:
    found = (said.percent(outlook.detectable_ratio[one], signed=False) for one in metrics)
    return f"  {outlook.pair_count:>5}  " + "".join(f"{one:>10}" for one in found)


def _advice(enough: Mapping[str, int | None], margin: float) -> tuple[str, ...]:
    size = said.percent(margin, signed=False)
    each = ", ".join(f"{said.label(metric)} {count or 'more than 20'}" for metric, count in enough.items())
    counts = [count for count in enough.values() if count is not None]
    lines = [f"Launches a side that find {size} {said.ENOUGH}: {each}"]
    if counts:
        lines.append(f"Recommended: `launches: {max(counts)}` in the suite")
    noisy = [said.label(metric) for metric, count in enough.items() if count is None]
    if noisy:
        lines.append(
            f"For {' and '.join(noisy)} make the levels longer: more requests average out what differs inside a launch."
        )
    return tuple(lines)


def _drifts(calibration: Calibration, metrics: Sequence[str]) -> tuple[str, ...]:
    drifting = [
        said.label(one.metric)
        for one in calibration.spreads
        if one.metric in metrics and one.neighbour_sd_ratio < DRIFT_RATIO * one.launch_sd_ratio
    ]
    if not drifting:
        return ()
    return (
        f"Launches close in time are more alike than others in {', '.join(drifting)}: the machine drifts. "
        "Two variants of one run, compared with --within, are spared that.",
    )
