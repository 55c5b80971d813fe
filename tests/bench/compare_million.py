"""Makes two results of many requests and compares them: time and memory of `specbench compare`.

    python tests/bench/compare_million.py [--requests 1000000] [--chunks 32] [--folder DIR] [--keep]

Each result has `--launches` launches (5) of one variant; together they hold `--requests` requests with `--chunks` chunks
each, in the form in which `run` stores them. The comparison runs in a process of its own; the peak of its memory is the
kernel's (`ru_maxrss`), of all its processes the largest plus those of its workers.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from specbench.plan import Trial
from specbench.records import LevelRecord, RequestRecord, RunRecord, TrialRecord
from specbench.store import MANIFEST_FILE, REQUESTS_FILE, RUN_FILE, pretty
from specbench.suite import Model, Server, Speculation, Suite, Variant, Workload

DISTINCT = 2000
"""Requests made by hand; the others repeat them under another index and prompt."""


def suite(launch_count: int) -> Suite:
    server = Server()
    drafting = Speculation(method="prompt_lookup", draft_tokens=4)
    return Suite(
        name="million",
        path="suites/million.yaml",
        model=Model(path="org/model"),
        variants=(Variant(name="lookup", engine="sglang", speculation=drafting, server=server),),
        baseline="lookup",
        workloads=(Workload(name="chat", concurrency=(64,)),),
        launches=launch_count,
    )


def request(index: int, chunk_count: int, dice: random.Random, pace: float) -> RequestRecord:
    due_s = index * 0.001
    at_s, times = due_s + 0.05 * pace * dice.lognormvariate(0, 0.2), []
    tokens = [1] + [dice.choice((1, 1, 2, 3, 4)) for _ in range(chunk_count - 1)]
    for _ in tokens:
        times.append(at_s)
        at_s += 0.02 * pace * dice.lognormvariate(0, 0.1)
    return RequestRecord(
        request_index=index,
        prompt_id=f"chat-{index:07d}",
        category="chat",
        workload="chat",
        concurrency=64,
        due_s=due_s,
        sent_s=due_s + 0.0001,
        done_s=times[-1],
        clock="kernel",
        chunk_s=tuple(times),
        chunk_tokens=tuple(tokens),
        token_source="usage_per_chunk",
        prompt_tokens=100,
        output_tokens=sum(tokens),
        verify_count=chunk_count - 1,
        correct_tokens=sum(tokens) - chunk_count,
        proposed_tokens=3 * (chunk_count - 1),
        finish_reason="length",
        output_text="An answer of the usual kind. " * (chunk_count // 8),
        status_code=200,
    )


def write_result(folder: Path, request_count: int, chunk_count: int, launch_count: int, seed: int) -> None:
    import msgspec

    dice = random.Random(seed)
    asked = suite(launch_count)
    trials = [Trial(variant="lookup", launch_index=n, block_index=n, order_index=n) for n in range(launch_count)]
    folder.mkdir(parents=True)
    started = f"2026-11-2{seed}T02:00:00Z"
    run = RunRecord(
        suite_name=asked.name,
        suite_path=asked.path,
        suite=msgspec.to_builtins(asked),
        trials=tuple(trials),
        started_utc=started,
        specbench_version="0.1.0",
        complete=True,
    )
    (folder / RUN_FILE).write_bytes(pretty(run))
    for trial in trials:
        place, count = folder / trial.folder, request_count // launch_count
        place.mkdir()
        level = LevelRecord(workload="chat", concurrency=64, started_s=0.0, ended_s=1e6, request_count=count)
        record = TrialRecord(trial=trial, engine="sglang", started_utc=started, levels=(level,), complete=True)
        (place / MANIFEST_FILE).write_bytes(pretty(record))
        pace = dice.lognormvariate(0, 0.005)
        lines = [msgspec.json.encode(request(n, chunk_count, dice, pace)) for n in range(DISTINCT)]
        with (place / REQUESTS_FILE).open("wb") as file:
            for number in range(count):
                line = lines[number % DISTINCT]
                old = b'"chat-%07d"' % (number % DISTINCT)
                file.write(line.replace(old, b'"chat-%07d"' % number, 1) + b"\n")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def measure(a: Path, b: Path) -> None:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "specbench.cli.main", "compare", str(a), str(b), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    wall_s = time.perf_counter() - started
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"compare ended with {done.returncode}: {done.stderr}")
    verdict = json.loads(done.stdout)["verdict"]
    say(
        f"verdict {verdict}; {wall_s:.1f} s wall, {spent.ru_utime + spent.ru_stime:.1f} s CPU, "
        f"peak {spent.ru_maxrss / 1024:.0f} MiB in its largest process, load {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000, help="a result")
    parser.add_argument("--chunks", type=int, default=32, help="a request")
    parser.add_argument("--launches", type=int, default=5, help="a result")
    parser.add_argument("--folder", type=Path, help="where the results are made (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="leave them there; they are used again")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="specbench-million-"))
    try:
        for seed, name in ((1, "a"), (2, "b")):
            if not (folder / name).exists():
                write_result(folder / name, args.requests, args.chunks, args.launches, seed)
        size = sum(one.stat().st_size for one in folder.glob("*/*/requests.jsonl"))
        say(f"2 × {args.requests} requests, {args.chunks} chunks each, {size / 1e9:.2f} GB")
        measure(folder / "a", folder / "b")
    finally:
        if not args.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
