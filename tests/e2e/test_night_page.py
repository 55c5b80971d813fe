"""The page of nights in a real browser: nothing asked for, nothing complained of, never too wide, sortable by keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from specbench.render.nightly import page
from specbench.render.plots.canvas import drawn
from specbench.render.plots.history import plots
from tests.e2e.chromium import Chromium, chromium, needs_chromium
from tests.unit.render.nights import HISTORIES

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module", params=sorted(HISTORIES))
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    history = HISTORIES[request.param]()
    found = tmp_path_factory.mktemp("nights") / "index.html"
    held = {night.run for night in history.nights}
    found.write_text(page.render(history, list(drawn(plots(history))), held, None), encoding="utf-8")
    return found


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_a_word_and_fits(browser: Chromium, path: Path, width: int, dark: bool) -> None:
    browser.show(path, width, dark=dark)
    assert browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    too_wide = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll')
        && !one.classList.contains('skip') && one.getBoundingClientRect().right > innerWidth).map(one => one.outerHTML)"""
    assert browser.evaluate(too_wide) == []
    assert browser.complaints == []
    assert browser.requests == [path.resolve().as_uri()]


def test_the_keyboard_reaches_the_table_and_sorts_it(browser: Chromium, path: Path) -> None:
    browser.show(path, 1280)
    for _ in range(60):
        browser.press("Tab", 9)
        if (
            browser.evaluate("document.activeElement.tagName + ':' + document.activeElement.textContent.trim()")
            == "BUTTON:night"
        ):
            break
    browser.press("Enter", 13)
    dates = browser.evaluate(
        "[...document.querySelector('#nights table').tBodies[0].rows].map(one => one.cells[0].textContent)"
    )
    assert dates == sorted(dates)
    assert browser.evaluate("document.activeElement.parentElement.getAttribute('aria-sort')") == "ascending"


def test_a_red_row_has_a_ground_of_its_own_that_can_be_read_on(browser: Chromium, path: Path) -> None:
    if "kimi" not in path.read_text(encoding="utf-8"):
        pytest.skip("only the long history has all outcomes")
    for dark in (False, True):
        browser.show(path, 1280, dark=dark)
        grounds = browser.evaluate(
            """[...document.querySelector('#nights table').tBodies[0].rows]
            .map(one => [one.cells[1].textContent, getComputedStyle(one.cells[1]).backgroundColor])"""
        )
        red = {ground for said, ground in grounds if said in ("FAIL", "FAILED TO RUN")}
        plain = {ground for said, ground in grounds if said not in ("FAIL", "FAILED TO RUN")}
        assert len(red) == len(plain) == 1
        assert not red & plain
