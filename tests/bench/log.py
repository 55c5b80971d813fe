"""How fast `specbench log` reads, against `grep -c "Decode batch"` of the same file, and how much memory it takes.

    python tests/bench/log.py --megabytes 1000

Makes a log of SGLang's (decode, prefill and access lines) in a temporary folder, reads it into the page cache,
then runs both alternately and prints medians, the ratio, and the largest resident size. Not a test: run it on a machine
that does nothing else.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

DECODE = (
    "[2026-11-01 {:02d}:{:02d}:{:02d} TP0] Decode batch. #running-req: {}, #token: {}, token usage: 0.{:02d}, "
    "accept len: {:.2f}, accept rate: {:.2f}, cuda graph: True, gen throughput (token/s): {:.2f}, #queue-req: 0, \n"
)
PREFILL = (
    "[2026-11-01 {:02d}:{:02d}:{:02d} TP0] Prefill batch. #new-seq: 1, #new-token: {}, #cached-token: 1, "
    "token usage: 0.05, #running-req: {}, #queue-req: 0, \n"
)
ACCESS = '[2026-11-01 {:02d}:{:02d}:{:02d}] INFO:     127.0.0.1:{} - "POST /generate HTTP/1.1" 200 OK\n'


RANKS_DECODE = (
    "{} [{} DP{} TP{}] Decode batch [{}], #running-req: {}, #full token: {}, full token usage: {:.2f}, #swa token: {}, "
    "swa token usage: 0.00, accept len: {:.2f}, accept rate: {:.2f}, cuda graph: {}, gen throughput (token/s): {:.2f}, "
    "#queue-req: {}\n"
)
RANKS_PREFILL = (
    "{} [{} DP{} TP{}] Prefill batch [{}], #new-seq: {}, #new-token: {}, #cached-token: {}, full token usage: {:.2f}, "
    "swa token usage: 0.00, #running-req: {}, #queue-req: 0, cuda graph: False, input throughput (token/s): {:.2f}\n"
)
RANKS_ACCESS = '{} [{}] INFO:     10.{}.{}.{}:{} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def plain(rng: random.Random, second: int) -> str:
    """A line of one rank."""
    clock, running, kind = (second // 3600 % 24, second // 60 % 60, second % 60), rng.choice((8, 15, 16)), rng.random()
    if kind < 0.7:
        accept = rng.uniform(1, 4)
        tail = (rng.randrange(10**5), rng.randrange(100), accept, accept / 4, accept * running * rng.uniform(38, 42))
        return DECODE.format(*clock, running, *tail)
    if kind < 0.82:
        return PREFILL.format(*clock, rng.randrange(10, 3000), running)
    return ACCESS.format(*clock, rng.randrange(30000, 60000))


def ranks(rng: random.Random, second: int) -> str:
    """A line of one of eight data-parallel ranks, through docker, where nearly every number has many widths."""
    clock, rank, kind = (
        f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}",
        rng.randrange(8),
        rng.random(),
    )
    stamps = (f"2026-11-01T{clock}.{rng.randrange(10**9):09d}Z", f"2026-11-01 {clock}")
    if kind < 0.6:
        running, accept = rng.choice((1, 2, 5, 9, 12, 31, 48, 64, 120)), rng.uniform(1, 4)
        used = (rng.randrange(10 ** rng.randrange(3, 7)), rng.random(), rng.randrange(10**5))
        tail = (accept, accept / 4, rng.random() < 0.8, accept * running * rng.uniform(30, 50), rng.choice((0, 0, 0, 3, 17)))
        return RANKS_DECODE.format(*stamps, rank, rank, rng.randrange(10**6), running, *used, *tail)
    if kind < 0.75:
        tokens = (rng.randrange(10, 9000), rng.randrange(3000), rng.random(), rng.randrange(64), rng.uniform(10, 20000))
        return RANKS_PREFILL.format(*stamps, rank, rank, rng.randrange(10**6), rng.randrange(1, 12), *tokens)
    address = (rng.randrange(256), rng.randrange(256), rng.randrange(256), rng.randrange(1024, 65536))
    return RANKS_ACCESS.format(*stamps, *address)


KINDS = {"plain": plain, "ranks": ranks}


def make(path: Path, size_bytes: int, kind: str = "plain") -> None:
    """Different lines for 20 MB, then the same again."""
    rng = random.Random(1)
    lines: list[str] = []
    length = 0
    while length < min(size_bytes, 20_000_000):
        lines.append(KINDS[kind](rng, len(lines) // 20))
        length += len(lines[-1])
    text = "".join(lines).encode()
    with path.open("wb") as file:
        for _ in range(max(1, size_bytes // len(text))):
            file.write(text)
        file.flush()
        os.fsync(file.fileno())  # else it is written out while it is read


def seconds(command: list[str]) -> float:
    """Wall time."""
    begin_s = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)  # into /dev/null, grep would stop at the first match
    return time.perf_counter() - begin_s


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--kind", choices=KINDS, default="plain", help="one rank, or eight behind docker, numbers of all widths"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        make(path, args.megabytes * 1_000_000, args.kind)
        grep = ["grep", "-c", "Decode batch", str(path)]
        own = [sys.executable, "-m", "specbench.cli.main", "log", str(path)]
        seconds(grep)
        times = [(seconds(grep), seconds(own)) for _ in range(args.rounds)]
        largest_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        grep_s, own_s = (median(column) for column in zip(*times, strict=True))
        ratios = sorted(mine / theirs for theirs, mine in times)
        sys.stdout.write(f"{path.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        sys.stdout.write(f"grep -c {grep_s:.2f} s, specbench log {own_s:.2f} s: ratio of medians {own_s / grep_s:.1f}\n")
        sys.stdout.write(f"ratios {ratios[0]:.1f} to {ratios[-1]:.1f}; largest resident size {largest_mib:.0f} MiB\n")


if __name__ == "__main__":
    main()
