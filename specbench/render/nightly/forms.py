"""One night in every form of `compare`. Where it was compared, its comparison speaks; else what became of it.

A night that was compared although it failed says both, or its comparison would seem to be the whole answer.
"""

import json
from collections.abc import Callable
from typing import Any, Final
from xml.etree import ElementTree

import msgspec

from specbench.analysis.comparing import Comparison
from specbench.nights import NIGHTS_SCHEMA_VERSION, Night
from specbench.render import words
from specbench.render.comparison import github, json_text, junit, markdown, terminal
from specbench.render.comparison.github import escaped
from specbench.render.json_report import strict
from specbench.render.markdown import escape
from specbench.render.nightly import words as said

FILES: Final = {
    "terminal": "night.txt",
    "markdown": "night.md",
    "json": "night.json",
    "junit": "night.junit.xml",
    "github": "night.github.txt",
}
COMPARISON_FILE: Final = "comparison.json"
SIGNS: Final = {"first": "🆕", "failed": "❌", "refused": "⛔"}
LEVELS: Final = {"first": "notice", "failed": "error", "refused": "error"}
ERRORS: Final = {"failed": "failed to run", "refused": "not comparable"}


def render(form: str, suite_name: str, night: Night, comparison: Comparison | None) -> str:
    """Ends with a line break. `form`: a key of `FILES`."""
    if form == "json":
        return json_form(suite_name, night, comparison)
    if form == "junit":
        return _junit(suite_name, night, comparison)
    compared: dict[str, Callable[[Comparison], str]] = {
        "terminal": terminal.render,
        "markdown": markdown.render,
        "github": github.render,
    }
    texts = [_ALONE[form](suite_name, night)] if comparison is None or night.status == "failed" else []
    texts += [] if comparison is None else [compared[form](comparison)]
    return ("" if form == "github" else "\n").join(texts)


def files(suite_name: str, night: Night, comparison: Comparison | None) -> dict[str, str]:
    """All forms, by file name; the comparison by itself as well, as its schema has it."""
    found = {name: render(form, suite_name, night, comparison) for form, name in FILES.items()}
    return found | ({} if comparison is None else {COMPARISON_FILE: json_text.render(comparison)})


def json_form(suite_name: str, night: Night, comparison: Comparison | None) -> str:
    """The row of the history, and the comparison or null."""
    whole: dict[str, Any] = {
        "schema_version": NIGHTS_SCHEMA_VERSION,
        "suite_name": suite_name,
        "label": "SIMULATED" if night.simulated else None,
        "exit_code": night.exit_code,
        "night": strict(msgspec.to_builtins(night)),
        "comparison": None if comparison is None else json_text.document(comparison),
    }
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _terminal(suite_name: str, night: Night) -> str:
    lines = [said.title(suite_name, night), *_stamp(night), "", said.status(night), *map(words.clean, night.headlines)]
    return "\n".join(lines) + "\n"


def _stamp(night: Night) -> list[str]:
    stamp = words.banner(night.simulated, None)
    return [stamp] if stamp else []


def _markdown(suite_name: str, night: Night) -> str:
    blocks = [f"## {SIGNS[night.status]} {said.status(night)} · {escape(said.title(suite_name, night))}"]
    blocks += [f"> **{escape(one)}**" for one in _stamp(night)]
    blocks.append("\n".join(f"- {escape(words.clean(one))}" for one in night.headlines))
    return "\n\n".join(blocks) + "\n"


def _github(suite_name: str, night: Night) -> str:
    stamp = "SIMULATED · " if night.simulated else ""
    title = f"{stamp}{said.status(night)}: {words.clean(suite_name)}"
    text = "\n".join(map(words.clean, night.headlines))
    return f"::{LEVELS[night.status]} title={escaped(title, ':,')}::{escaped(text)}\n"


def _junit(suite_name: str, night: Night, comparison: Comparison | None) -> str:
    root = ElementTree.Element("testsuites") if comparison is None else junit.tree(comparison)
    if comparison is None or night.status == "failed":
        _junit_suite(root, suite_name, night)
    root.set("name", said.title(suite_name, night) if comparison is None else root.get("name", ""))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(one.get(name, "0")) for one in root)))
    return junit.written(root)


def _junit_suite(root: ElementTree.Element, suite_name: str, night: Night) -> None:
    counts = {"tests": "1", "failures": "0", "errors": str(int(night.status in ERRORS))}
    suite = ElementTree.SubElement(root, "testsuite", {"name": "night"} | counts | {"skipped": "0", "time": "0"})
    suite.set("timestamp", night.started_utc.removesuffix("Z"))
    case = ElementTree.SubElement(
        suite, "testcase", name="ran", classname=f"specbench.{words.clean(suite_name)}.night", time="0"
    )
    text = "\n".join(map(words.clean, night.headlines))
    if night.status in ERRORS:
        error = ElementTree.SubElement(case, "error", type=ERRORS[night.status], message=words.clean(said.summary(night)))
        error.text = text
    ElementTree.SubElement(suite, "system-out").text = text


_ALONE: Final[dict[str, Callable[[str, Night], str]]] = {
    "terminal": _terminal,
    "markdown": _markdown,
    "github": _github,
}
