"""The page in a real browser: nothing asked for, nothing complained of, sortable, reachable by keyboard, never too wide."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from specbench.analysis.judge import judge_run
from specbench.cli.page import write_page
from tests.e2e.chromium import Chromium, chromium, needs_chromium
from tests.unit.render.pages import PAGES

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module", params=sorted(PAGES))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    stored = PAGES[request.param]()
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(stored, judge_run(stored), path)
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stored = PAGES["hostile"]()
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    write_page(stored, judge_run(stored), path)
    return path


@pytest.fixture(scope="module")
def sortable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stored = PAGES["a hundred cells"]()
    path = tmp_path_factory.mktemp("sortable") / "report.html"
    write_page(stored, judge_run(stored), path)
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_a_word_and_fits(browser: Chromium, page: Path, width: int, dark: bool) -> None:
    browser.show(page, width, dark=dark)
    assert browser.evaluate("document.querySelector('h1').getBoundingClientRect().height") > 0
    assert browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    too_wide = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll')
        && !one.classList.contains('skip') && one.getBoundingClientRect().right > innerWidth).map(one => one.outerHTML)"""
    assert browser.evaluate(too_wide) == []
    assert browser.complaints == []
    assert browser.requests == [page.resolve().as_uri()]


def test_a_click_sorts_and_another_turns_it_round(browser: Chromium, sortable: Path) -> None:
    browser.show(sortable, 1280)
    for order, sign in (("descending", -1), ("ascending", 1), ("descending", -1)):
        browser.evaluate(click("tok/s"))
        assert browser.evaluate(sorted_by("tok/s")) == order
        rates = [float(one) for one in browser.evaluate(column("tok/s"))]
        assert rates == sorted(rates, key=lambda rate: sign * rate)
        assert len(rates) == 100
    browser.evaluate(click("even AL"))
    lengths = browser.evaluate(column("even AL"))
    assert lengths[-5:] == ["–"] * 5
    assert "–" not in lengths[:-5]
    assert browser.evaluate(sorted_by("tok/s")) == "none"
    browser.evaluate(click("variant"))
    names = browser.evaluate(column("variant"))
    assert names.index("a-drafter-with-a-long-name-number-9") < names.index("a-drafter-with-a-long-name-number-10")


def test_the_keyboard_reaches_and_sorts(browser: Chromium, sortable: Path) -> None:
    browser.show(sortable, 1280)
    reached = []
    for _ in range(60):
        browser.press("Tab", 9)
        reached.append(browser.evaluate("document.activeElement.tagName + ':' + document.activeElement.textContent.trim()"))
        if reached[-1] == "BUTTON:steady tok/s":
            break
    assert reached[0] == "A:To the verdict"
    assert reached[-1] == "BUTTON:steady tok/s"
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter", 13)
    assert browser.evaluate(sorted_by("steady tok/s")) == "descending"
    browser.press(" ", 32)
    assert browser.evaluate(sorted_by("steady tok/s")) == "ascending"


def test_a_strange_script_is_refused(browser: Chromium, sortable: Path) -> None:
    browser.show(sortable, 1280)
    browser.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'strange = 1'}))")
    assert browser.evaluate("typeof strange") == "undefined"
    assert any("Content Security Policy" in one for one in browser.complaints)


def test_dark_paper_gets_light_ink(browser: Chromium, sortable: Path) -> None:
    colors = []
    for dark in (False, True):
        browser.show(sortable, 1280, dark=dark)
        text = "getComputedStyle(document.querySelector('.plot svg text')).fill"
        ground = "getComputedStyle(document.querySelector('.plot svg path')).fill"
        colors.append(
            (browser.evaluate("getComputedStyle(document.body).backgroundColor"), *map(browser.evaluate, (ground, text)))
        )
    light, dark_ones = colors
    assert light[0] == light[1] == "rgb(255, 255, 255)"
    assert dark_ones[0] == dark_ones[1] == "rgb(23, 25, 29)"
    assert light[2] != dark_ones[2]


@pytest.mark.parametrize("kind", ["more", "told"])
def test_it_prints_with_what_a_reader_of_paper_needs(browser: Chromium, sortable: Path, hostile: Path, kind: str) -> None:
    """`more`: figures; `told`: the servers' commands, and the ends of their logs."""
    browser.show(sortable if kind == "more" else hostile, 1280)
    closed = f"document.querySelectorAll('details.{kind}:not([open])').length"
    assert browser.evaluate(closed) > 0
    printed = browser.call("Page.printToPDF")["data"]
    assert printed.startswith("JVBERi")
    assert browser.evaluate(closed) == 0
    assert browser.complaints == []


TABLE = "[...document.querySelectorAll('table.sortable')].at(-1)"


def heading(name: str) -> str:
    return f"[...{TABLE}.tHead.rows[0].cells].find(one => one.textContent === {name!r})"


def click(name: str) -> str:
    return f"{heading(name)}.querySelector('button').click()"


def sorted_by(name: str) -> str:
    return f"{heading(name)}.getAttribute('aria-sort')"


def column(name: str) -> str:
    return f"[...{TABLE}.tBodies[0].rows].map(one => one.cells[{heading(name)}.cellIndex].textContent)"
