"""How a variant looks in every plot: colour, marker and line, by what it is where that tells it apart."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from specbench.analysis.dossier import Traits
from specbench.render import words
from specbench.render.plots.palette import DASHES, INK, MARKERS, MUTED, PAPER, SERIES

NAME_LENGTH = 26


class Look(Struct, frozen=True, kw_only=True):
    """Never colour alone."""

    color: str
    marker: str
    dashes: str
    label: str
    """The name, short enough for a margin."""
    weight: float = 1.5

    @property
    def fill(self) -> str:
        """Of its marker: hollow where its line is broken."""
        return self.color if self.dashes == "-" else PAPER


Looks = Mapping[str, Look]


def looks_of(traits: Sequence[Traits], baseline: str) -> Looks:
    """Colour: drafter; marker: draft tokens; dashed: CUDA graphs off. Where that is not enough, all in turn."""
    told = _by_traits(traits, baseline)
    distinct = {(one.color, one.marker, one.dashes) for one in told.values()}
    return told if len(distinct) == len(told) else _in_turn(traits, baseline)


def is_by_traits(looks: Looks, traits: Sequence[Traits], baseline: str) -> bool:
    """Whether these looks carry a meaning that a caption must tell."""
    return len(traits) > 2 and dict(looks) == _by_traits(traits, baseline)


def _by_traits(traits: Sequence[Traits], baseline: str) -> dict[str, Look]:
    drafters = list(dict.fromkeys(one.drafter for one in traits if one.drafter is not None))
    depths = sorted({one.draft_tokens for one in traits if one.draft_tokens is not None})
    looks: dict[str, Look] = {}
    for one in traits:
        looks[one.variant] = Look(
            color=INK if one.drafter is None else SERIES[drafters.index(one.drafter) % len(SERIES)],
            marker="h" if one.draft_tokens is None else MARKERS[depths.index(one.draft_tokens) % len(MARKERS)],
            dashes="--" if one.cuda_graph is False else "-",
            label=_label(one),
            weight=2.4 if one.variant == baseline else 1.5,
        )
    return looks


def _in_turn(traits: Sequence[Traits], baseline: str) -> dict[str, Look]:
    others = [one for one in traits if one.variant != baseline]
    looks = {baseline: Look(color=INK, marker="h", dashes="-", label=short(baseline), weight=2.4)}
    for place, one in enumerate(others):
        looks[one.variant] = Look(
            color=SERIES[place % len(SERIES)],
            marker=MARKERS[(place + place // len(SERIES)) % len(MARKERS)],
            dashes=DASHES[place // len(SERIES) % len(DASHES)],
            label=_label(one),
        )
    return looks


def _label(one: Traits) -> str:
    return f"{short(one.variant, NAME_LENGTH - 12)} (synthetic)" if one.synthetic else short(one.variant)


def look(looks: Looks, variant: str) -> Look:
    """Also of a variant that no longer stands in the suite."""
    return looks.get(variant) or Look(color=MUTED, marker="o", dashes="-", label=short(variant))


def short(name: str, length: int = NAME_LENGTH) -> str:
    """Its beginning and its end: variants of a matrix differ in both."""
    name = words.clean(name)
    if len(name) <= length:
        return name
    kept = length - 1
    return f"{name[: kept - kept // 2]}…{name[-(kept // 2) :]}"
