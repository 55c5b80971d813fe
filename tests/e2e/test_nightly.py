"""Nights of the simulated engine, launched for real: a planted slowdown is red, the next healthy night green."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.chromium import chromium, needs_chromium

SUITE = """\
name: small
engine: sglang
model: org/model
drafters:
  head: {path: org/head, method: eagle3}
variants:
  - name: baseline
  - {name: head-d4, speculation: {drafter: head, draft_tokens: 4}}
baseline: baseline
warmup: {request_count: 1, max_output_tokens: 1}
workloads:
  - {name: chat, categories: [copy], concurrency: [1], request_count: 1, max_output_tokens: 48}
rehearsal: {launch_sd_ratio: 0.002, load_s: 0.0, base_step_s: 0.12, prefill_s: 0.3FAULTS}
"""
SLOWER = ', faults: {head-d4: ["slow_steps:5"]}'
QUESTION = ("--variant", "head-d4", "--metric", "output_tps", "--metric", "accept_length")
"""Latencies of a few requests on a busy machine would decide nothing."""
NIGHT = ("nightly", "small.yaml", "--rehearse", "--full", "--no-check", *QUESTION)
BUSY_RATIO = 0.012
"""Of a pair of launches: with more noise than that six pairs can't tell 5 % from a margin of 2 %."""


def specbench(folder: Path, *words: str, slower: bool = False) -> subprocess.CompletedProcess[str]:
    (folder / "small.yaml").write_text(SUITE.replace("FAULTS", SLOWER if slower else ""))
    env = {name: value for name, value in os.environ.items() if name not in ("GITHUB_STEP_SUMMARY", "SPECBENCH_WEBHOOK")}
    command = [sys.executable, "-m", "specbench.cli.main", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=200)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After a first, a slow and a healthy night."""
    folder = tmp_path_factory.mktemp("nights")
    place = folder / "results" / "nightly" / "small.simulated"
    codes = []
    for night, slower in enumerate((False, True, False)):
        done = specbench(folder, *NIGHT, "--launches", "6", "--quiet", slower=slower)
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
        codes.append(done.returncode)
        (folder / f"night{night}.txt").write_text(done.stdout)
        (folder / f"night{night}.html").write_text((place / "index.html").read_text())
        if night and busy(place):
            pytest.skip(f"this machine is too busy to tell 5 %: exit codes {codes}")
    assert codes == [0, 1, 0]
    return place


def busy(place: Path) -> bool:
    (variant,) = json.loads((place / "latest" / "comparison.json").read_text())["variants"]
    return max(float(one["pair_sd_ratio"]) for one in variant["answers"]) > BUSY_RATIO


def nights(place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((place / "history.json").read_text())["nights"]
    return found


def test_the_slow_night_is_red_with_the_metric_and_the_healthy_one_green(place: Path) -> None:
    found = nights(place)
    assert [one["status"] for one in found] == ["first", "fail", "pass"]
    assert [(one["variant"], one["metric"]) for one in found[1]["worse"]] == [("head-d4", "output_tps")]
    assert found[1]["worse"][0]["change_ratio"] == pytest.approx(-0.048, abs=0.015)
    assert all(one["simulated"] for one in found)
    assert "SIMULATED" in (place.parents[2] / "night1.txt").read_text()
    assert (place / found[2]["run"] / "report.html").is_file()


@needs_chromium
def test_the_page_shows_red_and_then_green(place: Path, tmp_path: Path) -> None:
    said = "document.querySelector('#verdict .tag').textContent"
    color = "getComputedStyle(document.querySelector('#verdict .tag')).color"
    rows = "[...document.querySelector('#nights table').tBodies[0].rows].map(one => one.cells[1].textContent)"
    with chromium(tmp_path) as browser:
        seen = []
        for night in ("night1.html", "night2.html"):
            browser.show(place.parents[2] / night, 1280)
            seen.append((browser.evaluate(said), browser.evaluate(color), browser.evaluate(rows)))
            assert browser.complaints == []
    assert seen == [
        ("FAIL", "rgb(179, 38, 30)", ["FAIL", "FIRST NIGHT"]),
        ("PASS", "rgb(0, 105, 76)", ["PASS", "FAIL", "FIRST NIGHT"]),
    ]


def test_progress_as_json_lines_leaves_the_answer_on_standard_error(tmp_path: Path) -> None:
    done = specbench(tmp_path, *NIGHT, "--launches", "1", "--json-events", "-")
    assert done.returncode == 2, done.stderr  # of one launch, nothing can be compared with it
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[0]["kind"], lines[-1]["kind"], lines[-1]["exit_code"]) == ("run", "run_done", 0)
    moving = [one["progress"] for one in lines if one["kind"] == "progress"]
    assert moving[-1]["launch_ended_count"] == moving[-1]["launch_planned_count"] == 2
    assert moving[-1]["output_tps"] > 0
    assert moving[-1]["accept_length"] > 1
    assert "does not become the reference" in done.stderr
    assert "[1/1 head-d4.launch0]" in done.stderr


def test_lines_that_can_not_be_written_are_told_before_anything_starts(tmp_path: Path) -> None:
    done = specbench(tmp_path, "run", "small.yaml", "--rehearse", "--no-check", "--json-events", "nowhere/file")
    assert done.returncode == 2
    assert "--json-events nowhere/file: can't be written" in done.stderr
    assert not (tmp_path / "results").exists()
