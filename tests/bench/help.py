"""How long `specbench --help` takes, warm. Run by hand, on a quiet machine: python tests/bench/help.py

Not a test: a loaded machine would fail it. `tests/test_architecture.py` guards the cause, what is imported.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS_COUNT = 20
PROMISE_S = 0.150


def once_s() -> float:
    command = [str(Path(sys.executable).with_name("specbench")), "--help"]
    began_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began_s


def bench() -> bool:
    once_s()
    times_s = sorted(once_s() for _ in range(RUNS_COUNT))
    median_s = statistics.median(times_s)
    sys.stdout.write(
        f"median {median_s * 1000:.0f} ms, fastest {times_s[0] * 1000:.0f} ms, slowest {times_s[-1] * 1000:.0f} ms\n"
    )
    return median_s <= PROMISE_S


if __name__ == "__main__":
    sys.exit(0 if bench() else 1)
