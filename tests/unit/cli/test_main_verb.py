"""Finding the verb, and what becomes of mistakes."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specbench import __version__
from specbench.cli.main import VERBS, main
from specbench.errors import SpecbenchError


def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "specbench.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


@pytest.mark.parametrize("words", [["--help"], ["-h"], *([verb, "--help"] for verb in VERBS)])
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert "usage: specbench" in capsys.readouterr().out


def test_help_lists_every_verb_within_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    out = capsys.readouterr().out
    assert all(f"  {verb} " in out for verb in VERBS)
    assert max(map(len, out.splitlines())) <= 100


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"specbench {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pln"], "specbench: there is no verb 'pln'; did you mean 'plan'?\n"),
        (["xyz"], f"specbench: there is no verb 'xyz'; there are: {', '.join(VERBS)}\n"),
        ([], "usage: specbench VERB"),
        (["--jsn"], "unrecognized arguments: --jsn"),
        (["--"], "specbench: error: "),
        (["plan"], "the following arguments are required: SUITE"),
        (["plan", "x.yaml", "--full"], "specbench: --full belongs to --rehearse"),
        (["plan", "no/such.yaml"], "specbench: no/such.yaml: no such file\n"),
    ],
)
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (SpecbenchError("one\ntwo"), 2, "specbench: one\nspecbench: two\n"),
        (KeyboardInterrupt(), 130, ""),
        (SystemExit(3), 3, ""),
        (SystemExit(None), 0, ""),
    ],
)
def test_what_a_verb_raises(
    raised: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> int:
        raise raised

    module = ModuleType("specbench.cli.plan", "A verb.")
    monkeypatch.setattr(module, "add_arguments", lambda parser: None, raising=False)
    monkeypatch.setattr(module, "run", fail, raising=False)
    monkeypatch.setitem(sys.modules, "specbench.cli.plan", module)
    assert main(["plan"]) == code
    assert capsys.readouterr().err == said


def test_three_mistakes_are_three_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nmodel: m\nengin: sglang\nengine: sglang\nlaunches: 0\nworkloads: [{name: w}]\nvariants:\n  - name: a\n"
        "  - name: b\n    speculation: {method: eagle3, drafter: x, draft_tokens: 4}\n"
    )
    assert main(["plan", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"specbench: {path}:3: unknown key 'engin'; did you mean 'engine'?\n"
        f"specbench: {path}:5: 'launches' must be at least 1, not 0\n"
        f"specbench: {path}:10: drafter 'x' is not under 'drafters'; there are none\n"
    )


def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    command = f"{sys.executable} -m specbench.cli.main schema | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""


def test_a_terminal_without_our_signs_still_gets_the_answer() -> None:
    done = run("run", "--help", env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    assert (done.returncode, done.stderr) == (0, "")
