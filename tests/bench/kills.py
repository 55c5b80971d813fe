"""Kills runs by hand: `python tests/bench/kills.py --count 200 --victim harness --kind simulated daemons`. Not a test.

Prints a line a kill and the sums; what was left of a kill with a fault stays in its folder.
"""

import argparse
import collections
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.e2e.killing import Figures, Killing


def main() -> int:
    """1 when something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--victim", nargs="+", default=["harness"], choices=("harness", "server", "watcher", "everything"))
    parser.add_argument("--kind", nargs="+", default=["simulated", "daemons"], choices=("simulated", "daemons", "openvino"))
    chosen = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    found: list[Figures] = []
    for index in range(chosen.count):
        victim, kind = chosen.victim[index % len(chosen.victim)], chosen.kind[index % len(chosen.kind)]
        folder = home / str(index)
        figures = Killing(folder, chosen.first_seed + index, victim, kind).run()
        found.append(figures)
        tell(str(figures))
        if not figures.faults:
            shutil.rmtree(folder)
    sums: collections.Counter[str] = collections.Counter()
    for one in found:
        sums.update(
            {name: getattr(one, name) for name in ("begun", "reported", "left", "lost", "twice", "changed", "different")}
        )
        sums["redone"] += one.redone
        sums["trouble"] += bool(one.trouble)
    tell(f"{len(found)} kills: {dict(sums)}; gone after at most {max(one.gone_s for one in found):.1f} s; see {home}")
    return 1 if any(one.faults for one in found) else 0


def tell(line: str) -> None:
    """At once: a long series is watched."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
