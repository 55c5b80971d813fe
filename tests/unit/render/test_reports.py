"""What a person and a program read."""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from specbench.analysis import Finding, Judgement, Profile, VariantVerdict
from specbench.render import json_report, markdown, prose, terminal, words
from tests.unit.render.judgements import many, small

Golden = Callable[[str, str], None]


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("small.txt", lambda: terminal.render(small())),
        ("small.md", lambda: markdown.render(small())),
        ("small.json", lambda: json_report.render(small())),
        ("many.txt", lambda: terminal.render(many())),
    ],
)
def test_golden(golden: Golden, name: str, render: Callable[[], str]) -> None:
    golden(name, render())


@pytest.mark.parametrize("make", [small, many])
@pytest.mark.parametrize("all_cells", [False, True])
def test_a_hundred_columns_are_enough(make: Callable[[], Judgement], all_cells: bool) -> None:
    text = terminal.render(make(), 100, all_cells=all_cells)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "…" not in text


@pytest.mark.parametrize("width", [30, 60, 80, 100, 160])
def test_no_figure_is_cut_at_any_width(width: int) -> None:
    judgement = small()
    text = terminal.render(judgement, width)
    for row in judgement.summaries:
        assert words.rate(row.output_tps) in text
        assert words.times(row.speedup_ratio) in text
        assert words.pair_ms(row.tpot) in text


def test_many_cells_are_all_there_when_asked_for() -> None:
    judgement = many()
    assert "--all" in terminal.render(judgement)
    text = terminal.render(judgement, all_cells=True)
    assert "--all" not in text
    for workload in ("chat", "code", "math"):
        for streams in ("1 stream", "8 streams", "32 streams"):
            assert f"{workload}, {streams}" in text


def test_colour_only_where_it_is_asked_for() -> None:
    assert "\x1b" not in terminal.render(small())
    coloured = terminal.render(small(), color=True)
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()
    assert [line.rstrip() for line in bare] == terminal.render(small()).splitlines()


def test_simulated_is_said_wherever_a_table_is() -> None:
    text = terminal.render(many(), all_cells=True)
    titles = [line for line in text.splitlines() if line.startswith(("Overview", "Speed-up", "Results", "Variant by"))]
    assert len(titles) >= 4
    assert all("SIMULATED" in title for title in titles)
    assert text.splitlines()[0] == "specbench · kimi · SIMULATED"
    headings = [line for line in markdown.render(many()).splitlines() if re.match(r"##? ", line)]
    assert all("SIMULATED" in heading for heading in headings if heading != "## Findings")


def test_a_real_run_never_says_simulated() -> None:
    assert "SIMULATED" not in terminal.render(small()) + markdown.render(small()) + json_report.render(small())


def test_json_is_strict_and_says_what_it_is() -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    report = json.loads(json_report.render(many()), parse_constant=refuse)
    assert (report["schema_version"], report["simulated"], report["label"]) == (1, True, "SIMULATED")
    row = report["summaries"][0]
    assert row["ttft_p50_s"] == pytest.approx(0.1)
    assert row["accept_length"] is None
    assert len(report["summaries"]) == 14 * 9


def test_json_has_null_for_what_is_no_number() -> None:
    judgement = small()
    odd = msgspec.structs.replace(judgement.summaries[0], output_tps=float("nan"), speedup_ratio=float("inf"))
    report = json.loads(json_report.render(msgspec.structs.replace(judgement, summaries=(odd,))))
    assert (report["summaries"][0]["output_tps"], report["summaries"][0]["speedup_ratio"]) == (None, None)


def hostile() -> Judgement:
    text = "bad\x1b[31m [red]name[/red]\x07 | `x`\r\n<b>\u202e_y_"
    finding = Finding(code="odd", severity="error", variant="v\x1b[2J", message=text, evidence=text, remedy=text)
    verdict = VariantVerdict(variant="v\x1b[2J", verdicts=("unknown",), sentence=text)
    return msgspec.structs.replace(
        small(), model=text, suite_name=text, findings=(finding,), verdicts=(verdict,), notes=(text,), engines=(text,)
    )


@pytest.mark.parametrize("render", [terminal.render, markdown.render, json_report.render])
def test_control_characters_are_stripped(render: Callable[[Judgement], str]) -> None:
    text = render(hostile())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "[31m" not in text
    assert "[2J" not in text


def test_brackets_are_no_markup() -> None:
    assert "[red]name[/red]" in terminal.render(hostile())


def test_markdown_cells_stay_cells() -> None:
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in markdown.render(hostile()).splitlines() if line.startswith("| ")}
    assert len(bars) == 2  # the overview's rows and the cells' rows
    assert "<b>" not in markdown.render(hostile())


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        ((0.6, 0.3, 0.001, 0.0, 0.0), "60 %, 30 %, 0 % from position 3 on"),
        ((0.6, 0.3, 0.0, 0.0), "60 %, 30 %, 0 %, 0 %"),
        ((0.0, 0.0, 0.0, 0.0), "0 %, 0 %, 0 %, 0 %"),
    ],
)
def test_positions_that_are_alike_are_told_together(ratios: tuple[float, ...], told: str) -> None:
    judgement = msgspec.structs.replace(small(), profiles=(Profile(variant="good-d4", position_ratio=ratios),))
    assert prose.acceptance(judgement) == (("good-d4", f"by position {told}".replace(" %", "\N{NO-BREAK SPACE}%")),)


def test_a_run_of_nothing_still_renders() -> None:
    empty = msgspec.structs.replace(small(), summaries=(), verdicts=(), findings=(), overview=())
    for render in (terminal.render, markdown.render, json_report.render):
        assert "small" in render(empty)


@pytest.mark.parametrize(
    ("value_s", "text"), [(0.00123, "1.23"), (0.01234, "12.3"), (0.1, "100"), (12.3456, "12346"), (0.00999, "9.99")]
)
def test_milliseconds(value_s: float, text: str) -> None:
    assert words.milliseconds(value_s) == text


def test_failed_requests_get_a_column_only_where_there_are_any() -> None:
    whole = small()
    assert "no request failed" not in terminal.render(whole), "a launch of it failed, and its requests with it"
    judgement = msgspec.structs.replace(whole, findings=())
    assert "no request failed" in terminal.render(judgement)
    rows = (msgspec.structs.replace(judgement.summaries[0], failed_count=17), *judgement.summaries[1:])
    text = terminal.render(msgspec.structs.replace(judgement, summaries=rows))
    assert "no request failed" not in text
    assert "17" in text


def test_nothing_measured_is_never_a_zero() -> None:
    assert words.rate(None) == words.times(None) == words.percent(None) == words.pair_ms(None) == "–"
