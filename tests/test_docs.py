"""What the documents show is run, and what they name exists.

A fenced block marked "console runnable" holds commands after `$ `. Each must exit with 0; the lines shown below it must be
the first lines of what it prints. A line of three dots stands for the rest.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from specbench.cli.main import VERBS

ROOT: Final = Path(__file__).parent.parent
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS: Final = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "docs/README.md", ROOT / "specbench/DECISIONS.md"]


class Shown(NamedTuple):
    """A command, and the lines that the document shows below it."""

    command: str
    lines: list[str]


def shown_commands(text: str, runnable_only: bool = True) -> list[Shown]:
    mark = r"console runnable" if runnable_only else r"console[^\n]*"
    found: list[Shown] = []
    for block in re.findall(rf"^```{mark}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Shown(line.removeprefix("$ "), []))
            elif line.strip() != "...":
                found[-1].lines.append(line.rstrip())
    return found


def run(command: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    assert program == "specbench", command
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    script = str(Path(sys.executable).with_name("specbench"))
    return subprocess.run(
        [script, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_blocks_are_read() -> None:
    text = "```console runnable\n$ specbench one\nfirst\n...\n$ specbench two\n```\n\n```console\n$ specbench three\n```\n"
    assert shown_commands(text) == [Shown("specbench one", ["first"]), Shown("specbench two", [])]
    assert [shown.command for shown in shown_commands(text, runnable_only=False)][-1] == "specbench three"


@pytest.mark.parametrize("shown", shown_commands(README), ids=lambda shown: shown.command)
def test_commands_of_the_readme_run_as_shown(shown: Shown) -> None:
    done = run(shown.command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "it printed nothing"
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[: len(shown.lines)] == shown.lines


def test_help_plan_schema_are_among_them() -> None:
    verbs = {shlex.split(shown.command)[1] for shown in shown_commands(README)}
    assert {"--help", "plan", "schema"} <= verbs


def test_suites_that_the_readme_names_exist() -> None:
    named = set(re.findall(r"suites/[\w.-]+\.yaml", README))
    assert {"suites/quickstart.yaml", "suites/kimi.yaml"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_every_verb_is_in_the_readme() -> None:
    assert {"run", "plan", "report", "schema"} <= set(VERBS)
    assert [verb for verb in VERBS if f"$ specbench {verb} " not in README and f"$ specbench {verb}\n" not in README] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tests_that_a_document_names_exist(document: Path) -> None:
    named = re.findall(r"tests/[\w/]+\.py", document.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("name", ["first", "second"])
def test_ci_finds_the_two_commands(name: str) -> None:
    commands = re.findall(rf"^<!-- ci: {name} -->\n```bash\n(.+)\n```$", README, flags=re.MULTILINE)
    assert len(commands) == 1
    assert all(part.strip().startswith((".venv/bin/", "python3 -m venv .venv")) for part in commands[0].split("&&"))


def test_decisions_are_short() -> None:
    text = (ROOT / "specbench/DECISIONS.md").read_text(encoding="utf-8")
    entries = text.split("\n## ")[1:]
    assert len(entries) >= 10
    for entry in entries:
        title, *lines = entry.strip().splitlines()
        assert len(lines) <= 10, title
        assert all(word in entry for word in ("*Choice*", "*Cost*", "*Guard*")), title


def test_the_readme_counts_the_prompts() -> None:
    lines = (ROOT / "specbench/datasets/_builtin.jsonl").read_text(encoding="utf-8").splitlines()
    assert f"`builtin` has {len(lines)} of our own" in README
