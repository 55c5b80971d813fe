"""The load client against its peers, by hand: `python tests/bench/client.py --mock PATH` prints ratios of one run.

PATH is a server that takes `--port N`, speaks `/v1/chat/completions`, `/config?…`, `/reset` and `/stats`, and puts its own
send time (CLOCK_REALTIME, ns) in each event's `system_fingerprint`. It is pinned to core 0, each client to core 1, one
process each. All clients split the events and decode their JSON inside the measured CPU time. `--sglang COMMAND` adds
SGLang's own bench_serving. `--nice -10` needs rights.
"""

import argparse
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

MODES: Final = {"free-running": "flood=0&lockstep=0", "lockstep": "flood=0&lockstep=1"}
STACKS: Final = ("floor", "specbench", "specbench-client", "specbench-loop-stamps", "aiohttp", "httpx")
COLUMNS: Final = (
    "us_event",
    "late_p50_ms",
    "late_p99_ms",
    "ttft_error_p99_ms",
    "core_ratio",
    "events_per_s",
    "grown_bytes_event",
)


def main() -> None:
    arguments = parse()
    if arguments.stack:
        from stacks import measure  # type: ignore[import-not-found]  # beside this file

        sys.stdout.write(json.dumps(measure(arguments)) + "\n")
        return
    server = start_server(arguments.mock, arguments.port, arguments.nice)
    try:
        for mode, query in MODES.items():
            report(
                mode,
                [run_stack(arguments, stack, query) for _ in range(arguments.repeats) for stack in chosen_stacks(arguments)],
            )
    finally:
        server.terminate()
        server.wait(10)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mock", help="path of the server")
    parser.add_argument("--port", type=int, default=free_port())
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--tokens-per-s", type=float, default=60.0, help="of each stream")
    parser.add_argument("--tokens", type=int, default=120, help="of each request")
    parser.add_argument("--requests", type=int, default=1, help="of each stream")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stacks", default=",".join(STACKS))
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--sglang", help="command of SGLang's bench_serving, such as 'python -m sglang.bench_serving'")
    parser.add_argument("--tokenizer", default="gpt2", help="for --sglang: a tokenizer's folder or name")
    parser.add_argument("--stack", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.mock and not arguments.stack:
        parser.error("--mock PATH is needed: the server to measure against")
    return arguments


def chosen_stacks(arguments: argparse.Namespace) -> list[str]:
    installed = {"aiohttp": importlib.util.find_spec("aiohttp") is not None}
    chosen = [stack for stack in arguments.stacks.split(",") if installed.get(stack, True)]
    return chosen + (["sglang"] if arguments.sglang else [])


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def pinned(core_index: int, nice: int) -> list[str]:
    core = core_index % len(os.sched_getaffinity(0))
    return ["nice", "-n", str(nice), "taskset", "-c", str(sorted(os.sched_getaffinity(0))[core])]


def start_server(path: str, port: int, nice: int) -> subprocess.Popen[bytes]:
    runner = [sys.executable] if path.endswith(".py") else []
    server = subprocess.Popen([*pinned(0, nice), *runner, str(Path(path).resolve()), "--port", str(port)])
    for _ in range(100):
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", port)) == 0:
                return server
        time.sleep(0.05)
    server.kill()
    raise SystemExit(f"{path} does not listen on port {port}")


def run_stack(arguments: argparse.Namespace, stack: str, query: str) -> dict[str, Any]:
    if stack == "sglang":
        from peer import measure as measure_peer  # type: ignore[import-not-found]  # beside this file

        try:
            row: dict[str, Any] = measure_peer(arguments, pinned(1, arguments.nice), query)
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            return {"stack": stack, "error": str(error)}
        return row
    base_url = f"http://127.0.0.1:{arguments.port}"
    gap_ms = 1000 / arguments.tokens_per_s
    urllib.request.urlopen(f"{base_url}/config?{query}&ttft_ms=300&itl_ms={gap_ms:.4f}&tpc=1").read()
    command = [*pinned(1, arguments.nice), sys.executable, __file__, "--stack", stack, "--port", str(arguments.port)]
    for name in ("streams", "tokens", "requests", "loop", "tokens_per_s"):
        command += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return {"stack": stack, "error": done.stderr.strip().splitlines()[-1]}
    return {"stack": stack, **json.loads(done.stdout)}


def report(mode: str, results: list[dict[str, Any]]) -> None:
    """Medians over the repeats, and the CPU of each stack over that of the floor."""
    out = sys.stdout.write
    load = os.getloadavg()[0]
    out(
        f"\n{mode}; load average {load:.1f}\n{'stack':22}{'CPU/floor':>11}"
        + "".join(f"{name:>19}" for name in COLUMNS)
        + "\n"
    )
    names = list(dict.fromkeys(result["stack"] for result in results))
    rows = {name: [result for result in results if result["stack"] == name] for name in names}
    medians = {name: median_of([row for row in rows[name] if "error" not in row]) for name in names}
    floor = medians.get("floor", {}).get("us_event", float("nan"))
    for name in names:
        values = medians[name]
        if values:
            cells = "".join(f"{values[column]:>19.3f}" for column in COLUMNS)
            out(f"{name:22}{values['us_event'] / floor:>11.2f}{cells}\n")
        for row in rows[name]:
            if "error" in row:
                out(f"{name:22} failed: {row['error']}\n")


def median_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {column: statistics.median(row[column] for row in rows) for column in COLUMNS} if rows else {}


if __name__ == "__main__":
    main()
