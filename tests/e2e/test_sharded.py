"""A load that one client process can't take is dealt to several, and the manifest says to how many."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from specbench.cli.main import main
from specbench.execution.truth import Script
from specbench.execution.truth_process import truth_server
from specbench.store import read_run

SUITE = """
name: wide
model: m
engine: external
server: {{url: '{url}'}}
variants: [{{name: plain}}]
expected: {{per_user_tps: 10000}}
warmup: {{request_count: 1}}
workloads:
  - {{name: chat, dataset: jsonl, path: {prompts}, concurrency: [1, 8], request_count: 24}}
"""


@pytest.mark.parametrize("cores_count", [2, 5])
def test_the_count_follows_the_load_and_is_in_the_manifest(
    cores_count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores_count)))
    monkeypatch.setenv("SPECBENCH_CACHE", str(tmp_path / "cache"))
    scripts = [Script(name=f"s{index}", chunk_count=20, token_counts=(1, 3)) for index in range(24)]
    prompts, suite = tmp_path / "scripts.jsonl", tmp_path / "s.yaml"
    prompts.write_text("".join(json.dumps({"prompt": msgspec.json.encode(one).decode()}) + "\n" for one in scripts))
    with truth_server() as url:
        suite.write_text(SUITE.format(url=url, prompts=prompts))
        assert main(["run", str(suite), "--out", str(tmp_path / "out"), "--quiet"]) == 0, capsys.readouterr()
    (folder,) = (tmp_path / "out").iterdir()
    (trial,) = read_run(folder).trials
    assert [one.client_processes_count for one in trial.record.levels] == ([1, 1] if cores_count == 2 else [1, 4])
    requests = [one for one in trial.requests if not one.warmup]
    assert sorted(one.concurrency for one in requests) == [1] * 24 + [8] * 24
    assert {(one.error, one.output_tokens, len(one.chunk_s)) for one in requests} == {(None, 40, 20)}
    assert len({one.request_index for one in trial.requests}) == 49
