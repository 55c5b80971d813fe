"""`specbench check`: the user's mistake is told in a sentence, and a healthy suite gets silence."""

import json
from pathlib import Path
from typing import Final

import pytest

from specbench.cli.main import main
from specbench.preflight.suites import with_methods
from specbench.suite import load_suite

ROOT: Final = Path(__file__).parents[3]
DRAFTER: Final = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 7168, "max_position_embeddings": 8192}
SUITE: Final = """\
name: planted
engine: sglang
model: owner/target
drafters:
  custom: {{path: {path}}}
variants:
  - name: plain
  - name: wrong
    speculation: {{{method}drafter: custom, draft_tokens: 4}}
workloads:
  - name: chat
    concurrency: [1, 8]
"""


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def planted(tmp_path: Path, method: str) -> Path:
    folder = tmp_path / "drafter"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(DRAFTER))
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE.format(path=folder, method=method))
    return path


@pytest.mark.parametrize("name", ["kimi", "quickstart"])
def test_shipped_suites_raise_no_doubts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(ROOT / "suites" / f"{name}.yaml")]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == (1 if name == "kimi" else 0), "what can't be looked into is said once"


def test_the_wrong_word_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(planted(tmp_path, "method: eagle, "))]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("finding variants error eagle3_drafter_needs_EAGLE3 wrong")
    assert "error: eagle3_drafter_needs_EAGLE3 (wrong)" in shown
    assert "The drafter is made for EAGLE3 and is asked to draft as EAGLE" in shown
    assert "Write `method: eagle3` in the suite instead of `eagle`" in shown


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", str(planted(tmp_path, "method: eagle, "))]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert (finding["code"], finding["variant"]) == ("eagle3_drafter_needs_EAGLE3", "wrong")


def test_a_method_left_out_is_inferred(tmp_path: Path) -> None:
    path = planted(tmp_path, "")
    suite = with_methods(load_suite(str(path), {}, known={"engine": ("sglang",), "dataset": ("builtin",)}))
    speculation = suite.variant("wrong").speculation
    assert speculation is not None
    assert speculation.method == "eagle3"
    assert main(["check", str(path)]) == 0


@pytest.mark.parametrize(("extra", "cause"), [((), "preflight"), (("--no-check",), None)])
def test_run_obeys(tmp_path: Path, extra: tuple[str, ...], cause: str | None) -> None:
    arguments = ["run", str(planted(tmp_path, "method: eagle, ")), "--rehearse", "--quiet", "--variant", "wrong"]
    code = main([*arguments, "--out", str(tmp_path / "results"), *extra])
    (run,) = (tmp_path / "results").iterdir()
    failure = json.loads((run / "wrong.launch0" / "manifest.json").read_text())["failure"]
    assert (failure and failure["kind"]) == cause
    assert json.loads((run / "run.json").read_text())["checked"] is (not extra)
    assert code == (1 if cause else 0)
    assert ("dead_drafter" in (run / "report.json").read_text()) is bool(extra)


def test_a_llama_cpp_drafter_that_would_not_be_used_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "llama.yaml"
    path.write_text(
        "name: llama\nengine: llamacpp\nmodel: t.gguf\nvariants:\n  - name: plain\n"
        "  - {name: forgotten, args: [-md, d.gguf]}\nworkloads: [{name: chat}]\n"
    )
    assert main(["check", str(path)]) == 1
    assert "error: draft_model_without_spec_type  (forgotten)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("dataset: jsonl, path: nothing.jsonl", "workload 'w': nothing.jsonl: there is no such file"),
        ("categories: [chatt]", "workload 'w': category 'chatt' does not exist; did you mean 'chat'?"),
        ("arrival: {trace: nothing.jsonl}", "workload 'w': nothing.jsonl: the trace can't be read"),
    ],
)
def test_prompts_that_can_not_be_read_are_told(
    workload: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        f"name: s\nengine: sglang\nmodel: o/m\nvariants: [{{name: plain}}]\nworkloads: [{{name: w, {workload}}}]\n"
    )
    assert main(["check", str(path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("finding variants error prompts_unreadable all error: prompts_unreadable workload 'w'")
    assert words in said


def test_a_set_that_would_be_fetched_is_not_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nengine: sglang\nmodel: o/m\nvariants: [{name: plain}]\nworkloads: [{name: w, dataset: gsm8k}]\n"
    )
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("path", ["./gone", "/gone/head", "~/gone-head", "drafters/gone", "a/b/gone"])
def test_a_missing_folder_is_not_taken_for_a_name_on_the_hub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "drafters").mkdir()
    monkeypatch.chdir(tmp_path)
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE.format(path=path, method=""))
    assert main(["check", str(suite)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"the drafter of variant 'wrong', {path}, does not exist on this machine" in shown
    suite.write_text(SUITE.format(path=path, method="method: eagle3, "))
    assert main(["check", str(suite)]) == 0
    assert "gone" in (told := capsys.readouterr().err)
    assert "(the folder does not exist)" in told


def test_warnings_name_the_workload_that_they_speak_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = planted(tmp_path, "method: eagle3, ")
    text = path.read_text() + "  - {name: wide, concurrency: [64], ignore_eos: true}\n"
    text += "  - {name: noise, dataset: random, concurrency: [1], request_count: 1, max_output_tokens: 8}\n"
    path.write_text(text)
    assert main(["check", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "64 streams of workload 'wide' are planned: the rest queue" in shown
    assert "ignore_eos: true of workload 'wide'" in shown
    assert "dataset: random of workload 'noise'" in shown
    assert "the shortest level of workload 'noise' may have only 2" in shown
