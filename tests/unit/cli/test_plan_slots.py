"""What `plan` says of slots, jobs, GPU-hours and cost."""

import json
from pathlib import Path
from typing import Any

import pytest

from specbench.cli.main import main
from specbench.execution import scale

SUITE = """\
name: slots
model: nowhere/model
engine: sglang
packing: on
hardware: {gpu_count: 8, gpu_hour_price: 2.5}
expected: {startup_s: 60, per_user_tps: 10}
workloads:
  - {name: chat, request_count: 1, max_output_tokens: 300}
variants:
  - {name: narrow}
  - {name: wide, tensor_parallel: 8}
  - {name: half, tensor_parallel: 4}
"""


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scale, "usable_cores_count", lambda: 8)
    monkeypatch.chdir(tmp_path)


def planned(capsys: pytest.CaptureFixture[str], text: str, *words: str) -> str:
    Path("slots.yaml").write_text(text)
    assert main(["plan", "slots.yaml", *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], text: str, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(planned(capsys, text, "--json", *words))
    return document


def test_packed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each launch takes 60 s and 300 tokens at 10 a second: 90 s. 13 GPUs for 90 s are 0.325 hours."""
    text = planned(capsys, SUITE)
    assert "launches   3, 2 side by side: 3 variants × 1; packed, the widest first" in text
    assert "0.33 GPU-hours held by launches, by the same guess; cost 0.81 at 2.5 an hour" in text
    assert "1/3  wide · GPUs 0–7 · port 30000 (leased at run) · about 2 min · begins at once" in text
    assert "2/3  half · GPUs 0–3" in text
    assert "CUDA_VISIBLE_DEVICES=4 " in text
    assert "narrowed" not in text
    document = as_json(capsys, SUITE)
    assert document["estimate_s"] == pytest.approx(180)
    assert document["gpu_hours"] == pytest.approx(13 * 90 / 3600)
    assert document["cost"] == pytest.approx(2.5 * 13 * 90 / 3600)
    assert [one["start_s"] for one in document["launches"]] == pytest.approx([0, 90, 90])


def test_a_machine_that_can_not_drive_so_many(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "usable_cores_count", lambda: 2)
    busy = SUITE.replace("per_user_tps: 10", "per_user_tps: 9000").replace("name: chat", "name: chat, concurrency: [1]")
    text = " ".join(planned(capsys, busy).split())
    assert "packing is narrowed to 1 server at a time: one server's load brings up to 9000 chunks a second" in text
    assert "3, one after another" in text


def test_control_adds_launches(capsys: pytest.CaptureFixture[str]) -> None:
    text = planned(capsys, SUITE.replace("packing: on", "packing: control"))
    assert "and 2 of them alone as well (packing: control)" in " ".join(text.split())
    assert "5/5  narrow · alone · GPU" in text


def test_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    wider = SUITE.replace("gpu_count: 8", "gpu_count: 16").replace("tensor_parallel: 8", "tensor_parallel: 16")
    text = planned(capsys, wider, "--launcher", "slurm")
    assert "3, in 3 jobs of Slurm (a block's arms share a job), as many at once as it allows" in " ".join(text.split())
    assert "1/3  wide · job 1: 2 nodes × 8 GPUs · port" in text
    assert "--nnodes 2 \\\n" in text
    assert "--dist-init-addr NODE0:30001" in text
    assert as_json(capsys, wider, "--launcher", "slurm")["gpu_hours"] == pytest.approx(21 * 90 / 3600)


def test_a_server_of_vllm_over_several_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    wider = SUITE.replace("gpu_count: 8", "gpu_count: 16").replace("tensor_parallel: 8", "tensor_parallel: 16")
    text = planned(capsys, wider.replace("engine: sglang", "engine: vllm"), "--launcher", "slurm")
    assert "--nnodes 2 \\\n        --node-rank 0 \\\n        --master-addr NODE0 \\\n        --master-port 30001\n" in text
    assert "(and so on every further node, with its own --node-rank and --headless)" in text


def test_the_same_trials_whichever_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    here, there = (as_json(capsys, SUITE, "--launcher", name) for name in ("local", "slurm"))
    assert [one["trial"] for one in here["launches"]] == [one["trial"] for one in there["launches"]]
    assert (here["gpu_hours"], here["cost"]) == (there["gpu_hours"], there["cost"])


def test_control_needs_a_machine_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("slots.yaml").write_text(SUITE.replace("packing: on", "packing: control"))
    assert main(["plan", "slots.yaml", "--launcher", "slurm"]) == 2
    assert "packing: control is measured by the local launcher" in capsys.readouterr().err


def test_words_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    Path("slots.yaml").write_text(SUITE.replace("packing: on", "packing: onn\nslurm: {time_limit: soon}"))
    assert main(["plan", "slots.yaml"]) == 2
    err = capsys.readouterr().err
    assert "slots.yaml:4: 'packing' must be one of control, off, on, not the text 'onn'; did you mean 'on'?" in err
    assert "slots.yaml:5: 'time_limit': 'soon' is no time limit as Slurm takes it, such as 4:00:00" in err


def test_gpus_are_not_given_out_twice(capsys: pytest.CaptureFixture[str]) -> None:
    text = SUITE.replace("engine: sglang", "engine: sglang\nserver: {args: [--base-gpu-id, 2]}")
    Path("slots.yaml").write_text(text)
    assert main(["run", "slots.yaml"]) == 2
    assert "sets --base-gpu-id in `args`; ports, host, GPUs and nodes are given out by specbench" in capsys.readouterr().err
