"""The ready-made files for nights: what they call exists, and what they hold is well-formed."""

import argparse
import configparser
import importlib
import re
import shlex
from pathlib import Path
from typing import Final

import pytest
import yaml

FOLDER: Final = Path(__file__).parent.parent / "docs" / "nightly"
FILES: Final = sorted(FOLDER.iterdir())


def commands(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(r'^[^#\n]*specbench (nightly "?suites/.*)$', text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_command_is_one_that_specbench_takes(path: Path) -> None:
    found = commands(path)
    assert len(found) == (0 if path.suffix == ".timer" else 1)
    for command in found:
        parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
        importlib.import_module("specbench.cli.nightly").add_arguments(parser)
        parsed = parser.parse_args(shlex.split(command)[1:])
        assert parsed.suite.startswith("suites/")
        assert parsed.keep_gib == 50


def test_units_have_their_sections() -> None:
    sections = {}
    for path in FILES:
        if path.suffix in (".service", ".timer"):
            parser = configparser.ConfigParser(interpolation=None, strict=True)
            parser.optionxform = str  # type: ignore[assignment,method-assign]
            parser.read_string(path.read_text(encoding="utf-8"))
            sections[path.suffix] = {name: dict(parser[name]) for name in parser.sections()}
    assert sections[".service"]["Service"]["Type"] == "oneshot"
    assert sections[".timer"]["Install"]["WantedBy"] == "timers.target"


def test_the_workflow_runs_no_strangers_code() -> None:
    workflow = yaml.safe_load((FOLDER / "github-workflow.yml").read_text(encoding="utf-8"))
    assert set(workflow[True]) == {"schedule", "workflow_dispatch"}  # YAML reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert "self-hosted" in job["runs-on"]
    assert any("SPECBENCH_WEBHOOK" in step.get("env", {}) for step in job["steps"])
