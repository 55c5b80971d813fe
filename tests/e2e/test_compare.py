"""From launches of the simulated engine to verdicts, by the command line alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

SUITE = """\
name: alike
engine: sglang
model: org/model
drafters:
  head: {path: org/head, method: eagle3}
variants:
  - name: baseline
  - {name: head-d4, speculation: {drafter: head, draft_tokens: 4}}
baseline: baseline
workloads:
  - {name: chat, categories: [copy], concurrency: [1], request_count: 4, max_output_tokens: 16}
rehearsal: {launch_sd_ratio: 0.005, load_s: 0.0}
"""


def specbench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "specbench.cli.main", *words]
    env = {name: value for name, value in os.environ.items() if name != "GITHUB_STEP_SUMMARY"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_rehearsed_launches_are_compared_and_calibrated(tmp_path: Path) -> None:
    (tmp_path / "alike.yaml").write_text(SUITE, encoding="utf-8")
    done = specbench(tmp_path, "run", "alike.yaml", "--rehearse", "--quiet", "--no-check", "--launches", "3")
    assert done.returncode == 0, done.stderr
    assert "3 launches a variant" in done.stdout
    (run,) = (tmp_path / "results").iterdir()
    done = specbench(tmp_path, "compare", str(run), "--within", "baseline", "head-d4", "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    found = json.loads(done.stdout)
    assert (found["label"], found["exit_code"]) == ("SIMULATED", done.returncode)
    metrics = [one["change"]["metric"] for one in found["variants"][0]["answers"]]
    assert metrics == ["output_tps", "ttft_p50_s", "tpot_p50_s"]
    done = specbench(tmp_path, "calibrate", "alike.yaml", "--rehearse", "--quiet", "--launches", "3")
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout
    assert len(list((tmp_path / "results" / "calibration").glob("alike-*.simulated.json"))) == 1
