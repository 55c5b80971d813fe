"""Plots as values, and what is drawn of them."""

import itertools
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbench.analysis.dossier import Traits
from specbench.analysis.telemetry import POINTS_COUNT, thinned
from specbench.render.plots import palette
from specbench.render.plots.axes import spread
from specbench.render.plots.canvas import drawn
from specbench.render.plots.gallery import plots_of
from specbench.render.plots.identity import is_by_traits, look, looks_of, short
from tests.unit.render.pages import PAGES, dossier


def traits(name: str, drafter: str | None = None, draft_tokens: int | None = None, graphs: bool | None = None) -> Traits:
    return Traits(
        variant=name, drafter=drafter, draft_tokens=draft_tokens, cuda_graph=graphs, longest_accept_tokens=draft_tokens
    )


KIMI = [traits("baseline", graphs=True), traits("baseline-eager", graphs=False)] + [
    traits(f"{drafter}-d{count}-{graphs}", drafter, count, graphs)
    for drafter in ("custom", "aq-medai")
    for count in (4, 8, 16)
    for graphs in (True, False)
]


def test_looks_tell_drafter_depth_and_graphs() -> None:
    looks = looks_of(KIMI, "baseline")
    assert is_by_traits(looks, KIMI, "baseline")
    assert len({(one.color, one.marker, one.dashes) for one in looks.values()}) == len(KIMI)
    assert looks["custom-d4-True"].color == looks["custom-d16-False"].color != looks["aq-medai-d4-True"].color
    assert looks["custom-d4-True"].marker == looks["aq-medai-d4-False"].marker != looks["custom-d8-True"].marker
    assert looks["baseline-eager"].dashes == "--"


def test_looks_differ_where_traits_do_not() -> None:
    alike = [traits("baseline"), *(traits(f"same-{place}", "head", 4) for place in range(20))]
    looks = looks_of(alike, "baseline")
    assert not is_by_traits(looks, alike, "baseline")
    assert len({(one.color, one.marker, one.dashes) for one in looks.values()}) == len(alike)
    assert look(looks, "gone").label == "gone"


def test_long_names_keep_both_ends() -> None:
    assert short("a" * 30 + "-d16-eager", 12) == "aaaaaa…eager"
    assert len(short("x" * 99)) == 26


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.001, 0.2))
def test_labels_never_lie_on_each_other(wanted: list[float], gap: float) -> None:
    placed = spread(wanted, gap)
    fitting = min(gap, 1 / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    ordered = [placed[index] for index in order]
    assert all(after - before >= fitting - 1e-9 for before, after in itertools.pairwise(ordered))
    assert min(placed) >= -1e-9
    assert max(placed) <= 1 + 1e-9


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])
    assert spread([0.5, 0.5], 0.2) == pytest.approx([0.4, 0.6])


def test_thinning_keeps_the_extremes() -> None:
    points = [(float(at), 100.0) for at in range(10_000)]
    points[4321], points[77] = (4321.0, 900.0), (77.0, 1.0)
    kept = thinned(points)
    assert len(kept) <= POINTS_COUNT
    assert {(4321.0, 900.0), (77.0, 1.0)} <= set(kept)
    assert list(kept) == sorted(kept)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_plot_has_its_figures_as_a_table(name: str) -> None:
    plots = list(plots_of(dossier(name)))
    assert len({one.slug for one in plots}) == len(plots)
    for one in plots:
        assert one.rows
        assert {len(row) for row in one.rows} == {len(one.headings)}
        assert one.title
        assert one.description


def test_a_variant_at_every_level_is_a_point_of_the_break_even_diagram() -> None:
    found = dossier("a hundred cells")
    rows = [row for row in found.judgement.summaries if row.break_even_length is not None]
    plots = [one for one in plots_of(found) if one.section == "break-even"]
    assert sum(len(one.rows) for one in plots) == len(rows) == 19 * 5
    (first,) = (one for one in drawn(plots[:1]))
    assert all(short(row[0]) in first.svg for row in first.plot.rows)
    assert "speed-up = 1" in first.svg


def test_a_drawing_fits_a_strict_page_and_leaves_no_settings_behind() -> None:
    with mpl.rc_context({"lines.linewidth": 7.0, "svg.hashsalt": "mine"}):
        (one,) = drawn([next(iter(plots_of(dossier("hot"))))])
        assert (mpl.rcParams["lines.linewidth"], mpl.rcParams["svg.hashsalt"]) == (7.0, "mine")
    root = ElementTree.fromstring(one.svg)
    assert one.png.startswith(b"\x89PNG")
    assert all("style" not in each.attrib and not each.tag.endswith("}style") for each in root.iter())
    ids = [each.attrib["id"] for each in root.iter() if "id" in each.attrib]
    assert all(each.startswith(one.plot.slug) for each in ids)
    assert "2026" not in one.svg


def test_mathematics_in_names_is_no_mathematics() -> None:
    text = "".join(one.svg for one in drawn(plots_of(dossier("hostile"))))
    assert "$^$&lt;b&gt;&amp;0" in text


def luminance(color: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


INKS = (*palette.SERIES, palette.INK, palette.MUTED, palette.ALARM)


@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        *((ink, palette.PAPER) for ink in INKS),
        *((palette.DARK[ink], palette.DARK[palette.PAPER]) for ink in INKS),
        *zip(palette.HEAT_INK, palette.HEAT, strict=True),
        *((palette.INK, phase) for phase in palette.PHASES),
        *((palette.DARK[palette.INK], palette.DARK[phase]) for phase in palette.PHASES),
    ],
)
def test_every_label_can_be_read(ink: str, paper: str) -> None:
    """4.5: WCAG's AA for text of this size."""
    assert contrast(ink, paper) >= 4.5
