"""The page of nights: valid, self-contained, and saying what the history says."""

import re
import warnings

import html5lib
import pytest
from msgspec.structs import replace

from specbench.nights import History
from specbench.render.nightly import page
from specbench.render.plots.canvas import drawn
from specbench.render.plots.history import plots, series_of
from tests.unit.render.nights import CHANGED_INDEX, HISTORIES, many


def rendered(history: History, held: set[str] | None = None, pinned: str | None = None, drawing: bool = False) -> str:
    """Without plots, which take seconds, unless asked."""
    return page.render(history, list(drawn(plots(history))) if drawing else [], held or set(), pinned)


@pytest.fixture(scope="module", params=sorted(HISTORIES))
def text(request: pytest.FixtureRequest) -> str:
    return rendered(HISTORIES[request.param](), drawing=True)


def test_it_is_html_that_loads_nothing(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        html5lib.HTMLParser(strict=True).parse(text)
    assert "default-src 'none'" in text
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert [one for one in links if not one.startswith(("#", "data:")) and not one.endswith("/report.html")] == []
    assert "<img" not in text


def test_every_plot_has_a_name_a_description_and_its_figures(text: str) -> None:
    pictures = text.count('role="img"')
    assert pictures
    assert text.count("<desc") == text.count("Figures as a table") == pictures


def test_each_night_is_a_row_with_its_outcome() -> None:
    history = many()
    text = rendered(history, held={history.nights[-1].run})
    body = re.findall(r"<tbody>(.*?)</tbody>", text, flags=re.DOTALL)[-1]
    rows = body.split("<tr>")[1:]
    assert len(rows) == 45
    assert "2026-10-15 02:00" in rows[0]
    assert f'href="{history.nights[-1].run}/report.html"' in rows[0]
    assert "href" not in rows[1]
    failed = next(row for row in rows if "2026-09-10 02:00" in row)
    assert 'class="tag bad">FAILED TO RUN' in failed
    assert "CUDA out of memory" in failed
    red = next(row for row in rows if "2026-09-21 02:00" in row)
    assert "a-drafter-number-1: tok/s −4.9 %" in red


def test_change_points_are_told_in_words_and_drawn() -> None:
    history = many()
    speed, length = plots(history)
    day = history.nights[CHANGED_INDEX].started_utc[:10]
    assert re.search(rf"baseline changed: −\d\.\d % from {day} 02:00\.", speed.remark)
    assert length.remark == "No change point."
    (drawing,) = drawn([speed])
    assert drawing.svg.count("−5") >= 1
    assert "The history holds change points" in page.render(history, [drawing], set(), None)
    assert "The history holds change points" not in rendered(replace(history, nights=history.nights[:8]), drawing=True)


def test_a_variant_that_is_gone_or_new_leaves_gaps() -> None:
    history = many(3)
    nights = [replace(night, figures=night.figures[place:]) for place, night in enumerate(history.nights)]
    series = series_of(nights, lambda one: one.output_tps)
    assert list(series)[:2] == ["a-drafter-number-2", "a-drafter-number-3"]
    assert [value is None for value in series["baseline"]] == [False, True, True]
    rendered(replace(history, nights=tuple(nights)), drawing=True)


def test_nothing_measured_is_said() -> None:
    history = many(1)
    bare = replace(history, nights=(replace(history.nights[0], figures=(), status="failed", headlines=("no GPU",)),))
    text = rendered(bare)
    assert "Nothing was measured yet." in text
    assert "no GPU" in text
    assert "nothing to compare with yet" in text


def test_what_the_next_night_is_compared_with_is_said() -> None:
    assert "compared with kimi-20261015-020000, the last good one" in rendered(many())
    assert "compared with the pinned run elsewhere/run" in rendered(many(), pinned="elsewhere/run")


def test_old_nights_are_folded_and_not_lost() -> None:
    text = rendered(many(75))
    assert "15 older nights" in text
    assert "2026-09-01 02:00" in text


def test_plots_of_many_nights_say_that_they_show_the_newest() -> None:
    assert all(one.description.startswith("The newest 90 of 100 nights. Each strip") for one in plots(many(100)))
    assert all(one.description.startswith("Each strip") for one in plots(many(90)))


def test_what_is_simulated_says_so() -> None:
    history = many(2)
    simulated = replace(history, nights=tuple(replace(one, simulated=True) for one in history.nights))
    text = rendered(simulated)
    assert "<h1>specbench nightly · kimi · SIMULATED</h1>" in text
    assert "SIMULATED: these figures come from a cost model" in text
    assert "SIMULATED" not in rendered(history)
