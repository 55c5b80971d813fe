"""Runs whose tables are kept as golden files."""

import msgspec

from specbench.analysis import Judgement
from specbench.analysis.judge import judge_run
from specbench.suite import Speculation, Variant, Workload
from tests.unit.analysis.runs import SPECULATION, decode, failed, suite, variant, whole_run

Speeds = dict[tuple[str, int], tuple[float, int]]
REHEARSAL = "Rehearsal: 1 request a stream, 21 output tokens instead of 512."


def small() -> Judgement:
    """A real run: a drafter that gains here and loses there, a dead one, a server that died."""
    asked = suite(
        [
            variant("baseline"),
            variant("good-d4", speculation=SPECULATION),
            variant("dead-d4", speculation=Speculation(method="eagle", drafter="head", draft_tokens=4)),
            variant("broken", speculation=SPECULATION),
        ],
        [Workload(name="chat", concurrency=(1, 4)), Workload(name="code", concurrency=(1,))],
        name="small",
    )
    levels = (("chat", 1), ("chat", 4), ("code", 1))
    steps: dict[str, tuple[tuple[float, int], ...]] = {
        "baseline": ((0.010, 1), (0.012, 1), (0.010, 1)),
        "good-d4": ((0.014, 2), (0.034, 2), (0.014, 4)),
        "dead-d4": ((0.014, 1), (0.020, 1), (0.014, 1)),
        "broken": (),
    }
    speeds = {name: dict(zip(levels, cells, strict=False)) for name, cells in steps.items()}
    run = whole_run(speeds, asked)
    graphs = [decode(100.0 * place + 0.15, cuda_graph=True, running_requests=1) for place in range(3)]
    trials = [msgspec.structs.replace(one, observations=tuple(graphs)) for one in run.trials[:-1]]
    trials.append(failed("broken", "CUDA ran out of memory while capturing graphs."))
    return judge_run(msgspec.structs.replace(run, trials=tuple(trials)))


def many() -> Judgement:
    """A rehearsal of the user's case: drafters × draft tokens × graphs, three workloads, three levels."""
    workloads = [Workload(name=name, concurrency=(1, 8, 32)) for name in ("chat", "code", "math")]
    variants = [variant("baseline", cuda_graph=True), variant("baseline-eager", cuda_graph=False)]
    for drafter in ("custom", "aq-medai"):
        for draft_tokens in (4, 8, 16):
            for graphs in (True, False):
                name = f"{drafter}-d{draft_tokens}-{'graphs' if graphs else 'eager'}"
                spec = Speculation(method="eagle3", drafter="head", draft_tokens=draft_tokens)
                variants.append(variant(name, cuda_graph=graphs, speculation=spec))
    speeds = {one.name: _speeds(one, workloads) for one in variants}
    return judge_run(whole_run(speeds, suite(variants, workloads, name="kimi"), simulated=True, rehearsal=REHEARSAL))


def _speeds(one: Variant, workloads: list[Workload]) -> Speeds:
    """Wider drafts and eager steps take longer; the better drafter gives three tokens a step."""
    draft_tokens = one.speculation.draft_tokens if one.speculation else 0
    step_s = (0.011 if draft_tokens == 0 else 0.020 + 0.001 * draft_tokens) + (0.0 if one.cuda_graph else 0.010)
    tokens = 1 if draft_tokens == 0 else 3 if one.name.startswith("aq") else 2
    return {
        (workload.name, concurrency): (step_s * (1 + concurrency / 40), tokens)
        for workload in workloads
        for concurrency in workload.concurrency
    }
