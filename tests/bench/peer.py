"""SGLang's own bench_serving as a row of `client.py`: CPU an event of its whole process tree.

A tool of its own can't be measured from inside: it runs twice, with few and with many tokens a request, and the difference
is what an event costs it, start-up and report apart. How late it stamps can't be seen from outside.
"""

import argparse
import json
import resource
import shlex
import subprocess
import urllib.request
from typing import Any, Final

FEW_RATIO: Final = 0.25
TIMEOUT_S: Final = 300


def measure(arguments: argparse.Namespace, pin: list[str], query: str) -> dict[str, Any]:
    """A row; `arguments.sglang` is the command that stands before its own arguments."""
    base_url = f"http://127.0.0.1:{arguments.port}"
    gap_ms = 1000 / arguments.tokens_per_s
    urllib.request.urlopen(f"{base_url}/config?{query}&ttft_ms=300&itl_ms={gap_ms:.4f}&tpc=1").read()
    few = max(2, int(arguments.tokens * FEW_RATIO))
    few_s, few_events = _run(arguments, pin, base_url, few)
    many_s, many_events = _run(arguments, pin, base_url, arguments.tokens)
    nothing = float("nan")
    blank = dict.fromkeys(("late_p50_ms", "late_p99_ms", "ttft_error_p99_ms", "core_ratio", "events_per_s"), nothing)
    us_event = (many_s - few_s) / (many_events - few_events) * 1e6
    return {"stack": "sglang", "us_event": us_event, "grown_bytes_event": nothing, **blank}


def _run(arguments: argparse.Namespace, pin: list[str], base_url: str, tokens: int) -> tuple[float, int]:
    """CPU seconds and events."""
    urllib.request.urlopen(f"{base_url}/reset").read()
    command = [
        *pin,
        *shlex.split(arguments.sglang),
        "--backend",
        "sglang-oai-chat",
        "--base-url",
        base_url,
        "--model",
        "mock",
    ]
    command += ["--tokenizer", arguments.tokenizer, "--dataset-name", "random-ids", "--random-input-len", "64"]
    command += ["--random-output-len", str(tokens), "--random-range-ratio", "1", "--num-prompts", str(arguments.streams)]
    command += ["--max-concurrency", str(arguments.streams), "--disable-tqdm", "--output-file", "/dev/null"]
    before = _children_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])
    used_s = _children_s() - before
    return used_s, int(json.loads(urllib.request.urlopen(f"{base_url}/stats").read())["events"])


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
