"""All plots of a dossier, in the order of the page."""

from collections.abc import Iterator

from specbench.analysis.dossier import Dossier
from specbench.render.plots import Plot, acceptance, breakeven, latency, rates, timeline
from specbench.render.plots.identity import looks_of


def plots_of(dossier: Dossier) -> Iterator[Plot]:
    """Only those for which something was measured."""
    judgement = dossier.judgement
    looks = looks_of(dossier.traits, judgement.baseline)
    stamp = " · SIMULATED" if judgement.simulated else ""
    yield from breakeven.plots(judgement, looks, stamp)
    yield from rates.plots(judgement, looks, stamp)
    yield from acceptance.plots(dossier, looks, stamp)
    yield from latency.plots(dossier.distributions, looks, stamp)
    yield from timeline.plots(dossier.launches, looks, stamp)
