"""One night in every form of `compare`. Where it was compared, its comparison speaks; else what became of it."""

import io
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
SIGNS: Final = {"first": "🆕", "failed": "❌"}
LEVELS: Final = {"first": "notice", "failed": "error"}


def render(form: str, suite_name: str, night: Night, comparison: Comparison | None) -> str:
    """Ends with a line break. `form`: a key of `FILES`."""
    if form == "json":
        return json_form(suite_name, night, comparison)
    if comparison is None:
        return _ALONE[form](suite_name, night)
    compared: dict[str, Callable[[Comparison], str]] = {
        "terminal": terminal.render,
        "markdown": markdown.render,
        "junit": junit.render,
        "github": github.render,
    }
    return compared[form](comparison)


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


def _junit(suite_name: str, night: Night) -> str:
    failed = night.status == "failed"
    counts = {"tests": "1", "failures": "0", "errors": str(int(failed))}
    root = ElementTree.Element("testsuites", {"name": said.title(suite_name, night)} | counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "night"} | counts | {"skipped": "0", "time": "0"})
    suite.set("timestamp", night.started_utc.removesuffix("Z"))
    case = ElementTree.SubElement(
        suite, "testcase", name="ran", classname=f"specbench.{words.clean(suite_name)}.night", time="0"
    )
    text = "\n".join(map(words.clean, night.headlines))
    if failed:
        error = ElementTree.SubElement(case, "error", type="failed to run", message=text.partition("\n")[0])
        error.text = text
    ElementTree.SubElement(suite, "system-out").text = text
    ElementTree.indent(root)
    written = io.BytesIO()
    ElementTree.ElementTree(root).write(written, encoding="utf-8", xml_declaration=True)
    return written.getvalue().decode() + "\n"


_ALONE: Final[dict[str, Callable[[str, Night], str]]] = {
    "terminal": _terminal,
    "markdown": _markdown,
    "junit": _junit,
    "github": _github,
}
