"""How often `specbench compare` errs: simulations of its own decisions, not of a model of them.

    python tests/bench/false_alarms.py                      about a minute: every figure of docs/statistics.md
    python tests/bench/false_alarms.py --rehearse 240       and 200 comparisons of launches of the simulated engine

A launch has an effect of its own on each of four metrics. Exit code 1 when a bar is missed.
"""

import argparse
import io
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from statistics import fmean
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from specbench.analysis import stats
from specbench.analysis.comparing import Options
from specbench.analysis.comparing.compare import compare_sides
from specbench.analysis.comparing.decide import Decision, Question, decide
from specbench.analysis.comparing.launches import Side, read_sides

ALPHA, MARGIN, LAUNCH_SD, METRICS = 0.01, 0.02, 0.0075, 4
BETTER: tuple[Literal["higher", "lower"], ...] = ("higher", "higher", "lower", "lower")
Dice = np.random.Generator
Numbers = npt.NDArray[np.float64]
Effects = Callable[[Dice, int], Numbers]
"""Of 2 × pairs launches in the order in which they ran, for four metrics: (launches, metrics)."""


def gaussian(dice: Dice, count: int) -> Numbers:
    return dice.normal(0, LAUNCH_SD, (count, METRICS))


def heavy_tails(dice: Dice, count: int) -> Numbers:
    """t4, of the same standard deviation."""
    return np.asarray(dice.standard_t(4, (count, METRICS)) * LAUNCH_SD / math.sqrt(2))


def drifting(dice: Dice, count: int) -> Numbers:
    """A trend of up to six standard deviations over the run, and a random walk."""
    trend = np.linspace(0, 1, count)[:, None] * dice.uniform(-6, 6, METRICS) * LAUNCH_SD
    walk = np.cumsum(dice.normal(0, 0.3 * LAUNCH_SD, (count, METRICS)), axis=0)
    return trend + walk + gaussian(dice, count)


EFFECTS: dict[str, Effects] = {"Gaussian": gaussian, "t4": heavy_tails, "drifting": drifting}


def abba(effects: Numbers) -> Numbers:
    """(pairs, metrics): B minus A of neighbours, the order turned in every second pair."""
    signs = np.where(np.arange(len(effects) // 2) % 2 == 0, 1.0, -1.0)[:, None]
    return np.asarray((effects[1::2] - effects[::2]) * signs)


def decided(differences: Numbers) -> list[Decision]:
    """By the product's own code."""
    family = {
        str(place): Question(differences_ratio=tuple(map(float, differences[:, place])), better=BETTER[place])
        for place in range(METRICS)
    }
    return list(decide(family, ALPHA, MARGIN).values())


def upper_bound(hits: int, trials: int, alpha: float = 0.01) -> float:
    """One-sided, exact (Clopper and Pearson)."""
    low, high = hits / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        tail = 1 - stats.incomplete_beta(hits + 1, trials - hits, middle) if hits < trials else 1.0
        low, high = (middle, high) if tail > alpha else (low, middle)
    return high


def false_alarms(dice: Dice, trials: int) -> Iterator[tuple[str, float, float]]:
    """Comparisons of equals with 3 to 20 pairs in turn: how many say `changed` anywhere."""
    for name, effects in EFFECTS.items():
        hits = 0
        for trial in range(trials):
            answers = decided(abba(effects(dice, 2 * (3 + trial % 18))))
            hits += any(one.changed for one in answers)
        yield name, hits / trials, upper_bound(hits, trials)


def seen_changes(dice: Dice, trials: int, pairs: int, ratio: float, places: tuple[int, ...]) -> list[list[Decision]]:
    """Comparisons in which B is worse by `ratio` in the metrics at these places."""
    shift = np.zeros(METRICS)
    for place in places:
        shift[place] = math.log1p(-ratio) if BETTER[place] == "higher" else math.log1p(ratio)
    return [decided(abba(gaussian(dice, 2 * pairs)) + shift) for _ in range(trials)]


def share(truths: list[bool]) -> float:
    return fmean(map(float, truths))


def others(dice: Dice, trials: int) -> Iterator[tuple[str, float]]:
    """What else passes for a test, on launches that are equal. Nominal 1 %."""
    k = 5
    single = dice.normal(0, LAUNCH_SD * math.sqrt(2), (trials, k))
    means = np.array([one[dice.integers(0, k, (1000, k))].mean(axis=1) for one in single])
    outside = (np.quantile(means, 0.005, axis=1) > 0) | (np.quantile(means, 0.995, axis=1) < 0)
    yield "percentile bootstrap over 5 pairs of launches", float(outside.mean())
    peeks = dice.normal(0, LAUNCH_SD * math.sqrt(2), (trials, 20))
    yield "a look after every pair, from 3 to 20", share([_peeks(one) for one in peeks])
    yield "60 metrics without correction", 1 - 0.99**60
    requests = 200
    launches = dice.normal(0, 0.01, (trials, 2 * k, 1)) + dice.normal(0, 0.05, (trials, 2 * k, requests))
    paired = (launches[:, ::2] - launches[:, 1::2]).reshape(trials, -1)
    t = np.abs(paired.mean(axis=1)) / (paired.std(axis=1, ddof=1) / math.sqrt(k * requests))
    yield "requests as samples (launch 1 %, request 5 %; 5 × 200)", float((t > 2.58).mean())
    night = dice.normal(0, LAUNCH_SD, (trials, 1)) * math.sqrt(2) + dice.normal(0, LAUNCH_SD * math.sqrt(2), (trials, 10))
    t = np.abs(night.mean(axis=1)) / (night.std(axis=1, ddof=1) / math.sqrt(10))
    yield "our own test, two nights that differ as launches do", float((t > stats.t_quantile(0.995, 9)).mean())


def _peeks(differences: Numbers) -> bool:
    looks = (stats.paired(list(map(float, differences[:count]))) for count in range(3, 21))
    return any(stats.p_two_sided(one) <= ALPHA for one in looks)


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
  - {name: chat, categories: [chat], concurrency: [2], request_count: 4, max_output_tokens: 24}
rehearsal: {launch_sd_ratio: 0.0075, load_s: 0.0}
"""


def launched(launch_count: int) -> Side:
    """So many launches of one simulated server, as `run --rehearse` stores them."""
    from specbench.analysis.cells import suite_of
    from specbench.cli.main import main as specbench
    from specbench.streams import open_result

    with tempfile.TemporaryDirectory(prefix="specbench-alike-") as folder:
        Path(folder, "alike.yaml").write_text(SUITE, encoding="utf-8")
        asked = ["run", f"{folder}/alike.yaml", "--rehearse", "--quiet", "--no-check", "--variant", "head-d4"]
        with redirect_stdout(io.StringIO()):
            code = specbench([*asked, "--launches", str(launch_count), "--out", f"{folder}/results"])
        if code != 0:
            sys.exit(f"the rehearsal ended with {code}")
        (run,) = Path(folder, "results").iterdir()
        result = open_result(run)
        return read_sides([(result, suite_of(result), ["head-d4"])])[0]["head-d4"]


def rehearsed_alarms(side: Side, dice: Dice, comparisons: int = 200) -> int:
    """Neighbouring launches, as many as a run would have had, dealt to A and B as ABBA; some launches serve often."""
    launches = sorted(side.launches, key=lambda one: one.record.trial.order_index)
    alarms = 0
    for trial in range(comparisons):
        pairs = 3 + trial % 18
        start = int(dice.integers(0, len(launches) - 2 * pairs + 1))
        window = launches[start : start + 2 * pairs]
        sides: tuple[list[object], list[object]] = ([], [])
        for place, launch in enumerate(window):
            block = place // 2
            trial_of = replace(launch.record.trial, block_index=block)
            moved = replace(launch, record=replace(launch.record, trial=trial_of))
            sides[(place + block) % 2].append(moved)
        a, b = (replace(side, launches=tuple(one)) for one in sides)
        found = compare_sides([(a, b)], Options(), None, (), within=True)
        if found.verdict == "refused":
            sys.exit(f"refused: {found.variants[0].refusals}")
        alarms += any(one.changed for one in found.variants[0].answers)
    return alarms


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def bar(name: str, value: float, holds: bool, asked: str) -> bool:
    say(f"  {name:<62} {100 * value:6.2f} %   {'ok' if holds else 'MISSED'} ({asked})")
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000, help="comparisons of each kind (default: 10000)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rehearse", type=int, metavar="LAUNCHES", help="also launch the simulated engine so often")
    args = parser.parse_args()
    dice, held = np.random.default_rng(args.seed), []
    say(f"Comparisons of equals, 3 to 20 pairs, 4 metrics, nominal 1 %; {args.trials} of each kind")
    for name, rate, bound in false_alarms(dice, args.trials):
        held.append(bar(f"{name}: false alarms {100 * rate:.2f} %, upper 99 % bound", bound, bound <= 0.015, "at most 1.5"))
    say("Power at 10 pairs, 0.75 % from launch to launch, Holm over 4")
    two = seen_changes(dice, args.trials, 10, 0.02, (0,))
    rate = share([one[0].changed for one in two])
    held.append(bar("`changed` finds a 2 % drop of one metric", rate, rate >= 0.9, "at least 90"))
    none = seen_changes(dice, args.trials, 10, 0.0, ())
    rate = share([one[0].gate == "PASS" for one in none])
    held.append(bar("gate, no change: PASS of one metric", rate, rate >= 0.97, "at least 97"))
    rate = share([all(answer.gate == "PASS" for answer in one) for one in none])
    held.append(bar("gate, no change: PASS of all four", rate, rate >= 0.97, "at least 97"))
    four = seen_changes(dice, args.trials, 10, 0.04, (0,))
    rate = share([one[0].gate == "FAIL" for one in four])
    held.append(bar("gate, one metric 4 % worse: FAIL", rate, rate >= 0.97, "at least 97"))
    edge = seen_changes(dice, args.trials, 10, MARGIN, (0, 1, 2, 3))
    rate = share([any(answer.gate == "FAIL" for answer in one) for one in edge])
    held.append(bar("gate, all four worse by the margin itself: a FAIL", rate, rate <= 0.013, "about 1"))
    say("What else passes for a test: false alarms among equals, nominal 1 %")
    for name, rate in others(dice, min(args.trials, 2000)):
        say(f"  {name:<62} {100 * rate:6.2f} %")
    if args.rehearse:
        say(f"200 comparisons of equals, from {args.rehearse} launches of the simulated engine (SIMULATED)")
        alarms = rehearsed_alarms(launched(args.rehearse), dice)
        held.append(bar("alarms of 200", alarms / 200, alarms <= 6, "at most 6 of 200"))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
