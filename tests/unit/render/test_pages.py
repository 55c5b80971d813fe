"""The page of a run: well-formed, safe, complete, the same each time."""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from typing import Final
from xml.etree.ElementTree import Element

import html5lib
import pytest

from specbench.analysis.dossier import dossier_of
from specbench.analysis.judge import judge_run
from specbench.render.html import report
from specbench.render.html.markup import Markup, element, prose, text
from specbench.render.html.outcome import lead, outcomes
from specbench.render.html.table import table
from specbench.render.plots.canvas import drawn
from specbench.render.plots.gallery import plots_of
from specbench.suite import Speculation, Workload
from tests.unit.analysis.runs import SPECULATION, run, suite, trial, variant, whole_run
from tests.unit.render.judgements import many, small
from tests.unit.render.pages import PAGES, dossier

Golden = Callable[[str, str], None]
NAMES: Final = sorted(PAGES)
XHTML: Final = "{http://www.w3.org/1999/xhtml}"
SVG: Final = "{http://www.w3.org/2000/svg}"


@cache
def page(name: str) -> str:
    found = dossier(name)
    return report.render(found, drawn(plots_of(found)))


@cache
def tree(name: str) -> Element:
    """Raises for anything that is no HTML."""
    found: Element = html5lib.HTMLParser(strict=True).parse(page(name))
    return found


def words_of(one: Element) -> str:
    return " ".join(" ".join(one.itertext()).split())


@pytest.mark.parametrize("name", NAMES)
def test_it_is_well_formed(name: str) -> None:
    headings = [words_of(one).removesuffix(" · SIMULATED") for one in tree(name).iter(f"{XHTML}h2")]
    assert headings == [
        "Verdict", "Results", "Break-even", "Speed", "Acceptance", "Latency", "Launches", "Parity with the baseline",
        "Findings", "Environment", "Commands to reproduce",
    ]  # fmt: skip
    assert len(list(tree(name).iter(f"{XHTML}h1"))) == 1


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_references_resolve(name: str) -> None:
    every = [one for one in tree(name).iter() if isinstance(one.tag, str)]
    ids = [one.attrib["id"] for one in every if "id" in one.attrib]
    assert len(ids) == len(set(ids))
    named = {part for one in every for part in one.attrib.get("aria-labelledby", "").split()}
    links = {one.attrib["href"] for one in every if one.attrib.get("href", "").startswith("#")}
    urls = {part for one in every for value in one.attrib.values() for part in re.findall(r"url\(#([^)]+)\)", value)}
    assert named | {one[1:] for one in links} | urls <= set(ids)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_has_a_name_a_description_and_a_table(name: str) -> None:
    figures = list(tree(name).iter(f"{XHTML}figure"))
    pictures = list(tree(name).iter(f"{SVG}svg"))
    assert len(figures) == len(pictures) > 0
    assert not list(tree(name).iter(f"{XHTML}img"))
    for one in pictures:
        assert one.attrib["role"] == "img"
        title, description = one[0], one[1]
        assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
        assert words_of(title)
        assert words_of(description)
        assert one.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]
    assert all(any(True for _ in one.iter(f"{XHTML}table")) for one in figures)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_loaded_and_nothing_runs_but_our_script(name: str) -> None:
    for one in tree(name).iter():
        for key, value in one.attrib.items():
            assert key != "style"
            assert not key.startswith("on")
            if key in ("src", "href", "action", "srcset", "data"):
                assert value.startswith("#") or value == "data:,"
    assert len(list(tree(name).iter(f"{XHTML}script"))) == 1
    assert "@import" not in page(name)
    assert "url(" not in "".join(words_of(one) for one in tree(name).iter(f"{XHTML}style"))


@pytest.mark.parametrize("tag", ["style", "script"])
def test_the_policy_names_what_is_there(tag: str) -> None:
    policy = next(
        one.attrib["content"] for one in tree("hot").iter(f"{XHTML}meta") if "Content-Security-Policy" in one.attrib.values()
    )
    assert "default-src 'none'" in policy
    content = next(tree("hot").iter(f"{XHTML}{tag}")).text or ""
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert f"{tag}-src 'sha256-{digest}'" in policy


def test_hostile_texts_are_only_texts() -> None:
    shown = page("hostile")
    assert "<script>alert" not in shown
    assert "onerror=alert(1)&gt;" in shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert "alert(1)" in words_of(next(tree("hostile").iter(f"{XHTML}main")))


def test_the_same_run_gives_the_same_bytes() -> None:
    one, other = (tuple(drawn(plots_of(dossier("hot")))) for _ in range(2))
    assert [(each.svg, each.png) for each in one] == [(each.svg, each.png) for each in other]
    assert report.render(dossier("hot"), one) == page("hot")


def test_simulated_stands_on_every_figure_and_table() -> None:
    simulated, real = "a hundred cells", "one cell"
    assert "SIMULATED" not in page(real)
    titles = [words_of(one) for one in tree(simulated).iter(f"{SVG}title")]
    captions = [words_of(one) for one in tree(simulated).iter(f"{XHTML}caption")][:1]
    assert titles
    assert all("SIMULATED" in one for one in [*titles, *captions, words_of(next(tree(simulated).iter(f"{XHTML}title")))])
    assert 'class="banner"' in page(simulated)


def test_golden(golden: Golden) -> None:
    golden("page.html", report.render(dossier("hot"), ()))


def test_outcomes_name_who_pays_and_who_does_not() -> None:
    found = {one.variant: one for one in outcomes(small())}
    assert {name: one.group for name, one in found.items()} == {
        "baseline": "baseline", "good-d4": "mixed", "dead-d4": "dead", "broken": "failed",
    }  # fmt: skip
    assert found["good-d4"].remedies[0].startswith("Use it only where it gains: ")
    assert found["dead-d4"].remedies
    assert lead(small()).startswith("1 of 3 variants pays somewhere. The largest gain: good-d4 with ")


def test_outcomes_begin_with_the_baseline_and_the_best() -> None:
    told = outcomes(many())
    assert told[0].group == "baseline"
    paying = [one.best.speedup_ratio or 0 for one in told if one.group in ("pays", "mixed") and one.best]
    assert paying == sorted(paying, reverse=True)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("one cell", "none to compare it with"), ("only failures", "Nothing was measured"), ("hot", "No variant is faster")],
)
def test_the_lead_of_odd_runs(name: str, sentence: str) -> None:
    assert sentence in lead(dossier(name).judgement)


def test_a_synthetic_arm_is_named_and_never_ranked() -> None:
    ordered = Speculation(method="eagle3", drafter="head", draft_tokens=4, synthetic_length=3.0)
    asked = suite([variant("baseline"), variant("price", speculation=ordered)], [Workload(name="chat")])
    found = dossier_of(whole_run({"baseline": {("chat", 1): (0.01, 1)}, "price": {("chat", 1): (0.01, 3)}}, asked))
    assert [one.group for one in outcomes(found.judgement)] == ["baseline", "synthetic"]
    plots = list(plots_of(found))
    assert not [one for one in plots if one.section == "break-even"]
    assert all("price (synthetic)" in one.svg for one in drawn(plots) if one.plot.section in ("speed", "acceptance"))


def test_gpu_telemetry_is_drawn_where_there_is_some() -> None:
    assert "GPUs · drafter, launch 1" in page("hot")
    assert "no GPU telemetry" not in page("hot")
    assert "There is no GPU telemetry in this run." in page("one cell")


def test_a_failed_launch_shows_its_cause_and_the_end_of_its_log() -> None:
    shown = words_of(tree("only failures"))
    assert "drafter, launch 1 failed: The draft path is missing." in shown
    assert "OutOfMemoryError" in shown


def test_parity_tells_what_was_asked_from_what_was_not() -> None:
    asked = suite([variant("baseline"), variant("drafter", speculation=SPECULATION)])
    ours = {"draft_tokens": 4, "kv_cache_dtype": "fp8", "decode_log_interval": 10}
    stored = run(
        asked,
        [trial("baseline", resolved={"kv_cache_dtype": "auto", "decode_log_interval": 40}), trial("drafter", resolved=ours)],
    )
    found = {one.setting: one.asked for one in dossier_of(stored, judge_run(stored)).differences}
    assert found == {"draft_tokens": True, "kv_cache_dtype": False}
    assert "Differences that nobody asked for" in report.render(dossier_of(stored), ())


def test_commands_can_be_pasted() -> None:
    (launch,) = (one for one in dossier("hostile").launches if one.command)
    assert launch.command.startswith("ODD='")
    asked = suite([variant("baseline")])
    stored = run(asked, [trial("baseline", argv=("serve", "--x", "a b"), env={"A": "1 2"})], rehearsal="the whole load, …")
    found = dossier_of(stored)
    assert found.launches[0].command == "A='1 2' serve --x 'a b'"
    assert found.commands[0] == "specbench run results/made-20261129-153647/suite.yaml --rehearse --full"


def test_pieces_escape_what_they_are_given() -> None:
    assert element("p", "<b>", class_='"x"', hidden=True, id=None) == '<p class="&quot;x&quot;" hidden>&lt;b&gt;</p>'
    assert text("a\x1b[31m\nb") == "a b"
    assert prose("Measure `x < 2` now") == "Measure <code>x &lt; 2</code> now"
    assert prose("one ` only") == "one ` only"
    assert isinstance(table("t", ("a", "b"), [("x", "1")]), Markup)
    assert 'aria-sort="none"' in table("t", ("a", "b"), [("x", "1")], sortable=True)
