"""One night told by itself: a webhook's message, and the forms of a night that was not compared."""

import json

import pytest

from specbench.nights import Night
from specbench.render.nightly import forms
from specbench.render.nightly.message import TEXT_LENGTH, message, shape_for

NIGHT = Night(
    started_utc="2026-11-29T02:00:00Z", status="failed", headlines=("a <!channel> & b",), simulated=True, exit_code=2
)


def test_slack_is_known_by_its_host() -> None:
    assert shape_for("hooks.slack.com") == "slack"
    assert shape_for("hooks.slack.com.example.org") == "generic"


def test_slack_reads_text_and_no_commands() -> None:
    told = json.loads(message("slack", "s<b>", NIGHT))
    assert told["text"] == "❌ *FAILED TO RUN* · specbench nightly · s&lt;b&gt; · SIMULATED\n• a &lt;!channel&gt; &amp; b"


def test_slack_takes_no_book() -> None:
    night = Night(started_utc="2026-11-29T02:00:00Z", status="refused", headlines=("x" * 200,) * 50)
    assert len(json.loads(message("slack", "s", night))["blocks"][0]["text"]["text"]) <= TEXT_LENGTH + 1


def test_the_generic_body_holds_the_row() -> None:
    told = json.loads(message("generic", "s", NIGHT))
    assert (told["schema_version"], told["label"], told["status"], told["exit_code"]) == (1, "SIMULATED", "failed", 2)
    assert told["headlines"] == ["a <!channel> & b"]


@pytest.mark.parametrize("form", forms.FILES)
def test_every_form_says_what_happened_and_that_it_is_simulated(form: str) -> None:
    text = forms.render(form, "s", NIGHT, None)
    assert "SIMULATED" in text
    assert "channel" in text
    assert "failed" in text.lower()
    assert text.endswith("\n")
