"""`plan`: what would be launched, in which order, with which command."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from specbench.cli.main import main
from specbench.suite.secrets import HIDDEN

KIMI: Final = str(Path(__file__).parents[3] / "suites/kimi.yaml")
GOLDEN: Final = Path(__file__).parent / "plan.txt"

SMALL: Final = """\
name: small
model: {path: org/model, revision: v1}
engine: sglang
server:
  python: /no/such/python
  args: [--chat-template, "it's {{ x }}"]
  env: {LABEL: a b, TOKEN: pl4nted}
drafters:
  custom: {path: d/custom, method: eagle3}
variants:
  - name: plain
  - name: spec
    speculation: {drafter: custom, draft_tokens: 4}
  - name: theirs
    engine: external
    url: http://localhost:1234
workloads:
  - {name: chat, concurrency: [1, 8], max_output_tokens: 128}
launches: 2
seed: 7
hardware: {gpu_count: 1}
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    return "small.yaml"


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["plan", *words]) == 0
    return capsys.readouterr().out


def launches(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(planned(capsys, *words, "--json"))["launches"]


def commands(text: str) -> list[str]:
    """The shell commands that a plan shows, without their line breaks."""
    return [one.replace("\\\n", " ").strip() for one in text.split("\n\n") for one in one.split("\n", 1)[1:] if "env" in one]


def test_a_plan_reads_like_this(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys, small) == GOLDEN.read_text(encoding="utf-8")


def test_kimi_fits_into_100_columns_and_needs_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAFTERS", raising=False)
    text = planned(capsys, KIMI)
    assert all(f"{number}/14  " in text for number in range(1, 15))
    assert "SGLang is not installed for this Python" in text or "SGLang 0." in text
    assert max(map(len, text.splitlines())) <= 100 or "/python " in max(text.splitlines(), key=len)
    assert "SIMULATED" not in text


def test_kimi_s_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTERS", "/models")
    found = {one["trial"]["variant"]: one for one in launches(capsys, KIMI)}
    assert list(found)[:4] == ["baseline", "baseline-eager", "custom-d4-graphs", "custom-d4-eager"]
    argv = found["custom-d8-graphs"]["argv"]
    for flag, value in {
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": "/models/kimi-k2.5-eagle3",
        "--speculative-num-steps": "7",
        "--speculative-eagle-topk": "1",
        "--speculative-num-draft-tokens": "8",
        "--tp-size": "8",
        "--max-running-requests": "48",
    }.items():
        assert argv[argv.index(flag) + 1] == value
    assert not any("cuda-graph" in word for word in argv)
    assert any("cuda-graph" in word for word in found["custom-d8-eager"]["argv"])
    assert not any("speculative" in word for word in found["baseline"]["argv"])
    assert found["baseline"]["slot"]["gpu_ids"] == list(range(8))


def test_the_text_s_commands_are_those_of_the_json(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Pasted into a shell they give the same words."""
    told = launches(capsys, small)[:2]
    shown = commands(planned(capsys, small))
    assert len(shown) == 2
    for launch, command in zip(told, shown, strict=True):
        words = shlex.split(command)
        assert words[-len(launch["argv"]) :] == launch["argv"]
        for name, value in launch["env"].items():
            assert f"{name}={value.replace(HIDDEN, f'${name}')}" in words
        for name in launch["unset"]:
            assert words[words.index(name) - 1] == "-u"


def test_a_pasted_command_sets_its_environment(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = commands(planned(capsys, small))[0].replace(
        "/no/such/python -m sglang.launch_server", "printenv LABEL TOKEN #"
    )
    shell = {**os.environ, "TOKEN": "from the shell"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=30, env=shell)
    assert done.stdout == "a b\nfrom the shell\n"


@pytest.mark.parametrize("words", [(), ("--json",), ("--rehearse",), ("--rehearse", "--json")])
def test_a_plan_shows_no_secret(small: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    text = SMALL.replace("args: [", "args: [--api-key, pl4nted-too, '--proxy=http://u:pl4nted-pw@h', ")
    Path("small.yaml").write_text(
        text.replace("  - name: theirs\n    engine: external\n    url: http://localhost:1234\n", "")
    )
    shown = planned(capsys, small, *words)
    assert "pl4nted" not in shown
    assert "(hidden)" in shown


def test_a_rehearsal_says_simulated_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    text = planned(capsys, KIMI, "--rehearse")
    assert text.startswith("SIMULATED  a rehearsal")
    assert text.count("SIMULATED") == 15
    assert "at most 32 output tokens" in " ".join(text.split())
    assert "specbench.embedded.simulated" in text
    assert "at most 512 output tokens" in planned(capsys, KIMI, "--rehearse", "--full")


def test_json_says_whether_it_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    real = json.loads(planned(capsys, KIMI, "--json"))
    rehearsed = json.loads(planned(capsys, KIMI, "--json", "--rehearse"))
    assert (real["simulated"], rehearsed["simulated"]) == (False, True)
    assert real["estimate_s"] == pytest.approx(sum(one["estimate_s"] for one in real["launches"]))
    assert real["suite"]["variants"][2]["speculation"]["steps"] == 3


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "specbench suite"
