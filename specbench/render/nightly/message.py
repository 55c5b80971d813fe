"""One night as the JSON body of a webhook: our own, or as Slack and those who imitate it read it."""

import json
from typing import Any, Final, Literal

import msgspec

from specbench.nights import Night
from specbench.render import words
from specbench.render.nightly import words as said

Shape = Literal["generic", "slack"]
SHAPES: Final = ("generic", "slack")
MESSAGE_SCHEMA_VERSION: Final = 1
SLACK_HOSTS: Final = ("hooks.slack.com", "hooks.slack-gov.com")
SIGNS: Final = {
    "pass": "✅",
    "fail": "❌",
    "failed": "❌",
    "inconclusive": "❔",
    "refused": "⛔",
    "first": "🆕",
    "running": "…",
}
TEXT_LENGTH: Final = 2800
"""Characters; Slack takes 3000 in a block."""


def shape_for(host: str) -> Shape:
    """What a host reads, where nobody says."""
    return "slack" if host in SLACK_HOSTS else "generic"


def message(shape: Shape, suite_name: str, night: Night) -> str:
    """The body; nothing of it is secret that was not stored as well."""
    whole = _slack(suite_name, night) if shape == "slack" else _generic(suite_name, night)
    return json.dumps(whole, ensure_ascii=False, allow_nan=False)


def _generic(suite_name: str, night: Night) -> dict[str, Any]:
    row = msgspec.to_builtins(night)
    return {
        "schema_version": MESSAGE_SCHEMA_VERSION,
        "event": "specbench.nightly",
        "suite_name": suite_name,
        "label": "SIMULATED" if night.simulated else None,
        "status_text": said.status(night),
        **row,
    }


def _slack(suite_name: str, night: Night) -> dict[str, Any]:
    head = f"{SIGNS[night.status]} *{_escaped(said.status(night))}* · {_escaped(said.title(suite_name, night))}"
    lines = "\n".join(f"• {_escaped(words.clean(one))}" for one in night.headlines)
    text = f"{head}\n{lines}".strip()
    if len(text) > TEXT_LENGTH:
        text = f"{text[:TEXT_LENGTH]}…"
    return {"text": text, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]}


def _escaped(text: str) -> str:
    """The three signs that Slack reads as its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
