"""Runs whose pages must be readable: of one cell, of a hundred, of nothing but failures, of hostile texts."""

import msgspec

from specbench.analysis.dossier import Dossier, dossier_of
from specbench.records import Failure, Observation, Phase
from specbench.store import StoredRun
from specbench.suite import Speculation, Workload
from tests.unit.analysis.runs import SPECULATION, failed, request, run, suite, trial, variant, whole_run

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> $\\frac{1}{2}$ & \"quoted\" 'q' \x1b[31m\x00\u202e`"
)


def one_cell() -> StoredRun:
    """One variant, one level."""
    return whole_run({"baseline": {("chat", 1): (0.010, 1)}}, suite([variant("baseline")], [Workload(name="chat")]))


def hundred_cells() -> StoredRun:
    """Twenty variants at five levels."""
    levels = (1, 2, 4, 8, 16)
    variants = [variant("baseline")]
    for place in range(19):
        spec = Speculation(method="eagle3", drafter="head", draft_tokens=2 + place % 4)
        variants.append(variant(f"a-drafter-with-a-long-name-number-{place}", speculation=spec))
    speeds = {
        one.name: {("chat", level): (0.010 + 0.001 * level + 0.0004 * place, 1 + place % 3) for level in levels}
        for place, one in enumerate(variants)
    }
    return whole_run(
        speeds, suite(variants, [Workload(name="chat", concurrency=levels)]), simulated=True, rehearsal="Small."
    )


def only_failures() -> StoredRun:
    """No server came up."""
    asked = suite([variant("baseline"), variant("drafter", speculation=SPECULATION)], [Workload(name="chat")])
    return run(asked, [failed("baseline", "CUDA ran out of memory."), failed("drafter", "The draft path is missing.")])


def hostile() -> StoredRun:
    """Whatever a server, a file or a person may write is there as text, and as nothing else."""
    asked = suite([variant("baseline"), variant("drafter", speculation=SPECULATION)], [Workload(name="chat")])
    requests = [
        request(place, chunks=((0.1, 1), (0.2, 2)), drafts=(1, 1), category=f"$^$<b>&{place % 2}", due_s=0.2 * place)
        for place in range(8)
    ]
    gpu = Observation(at_s=0.5, source="telemetry", name="gpus", value={"gpus": [{"index": HOSTILE, "power_w": 3.0}]})
    trials = [
        trial("baseline", requests[:4]),
        trial(
            "drafter",
            requests,
            [gpu],
            phases=(Phase(name=HOSTILE, at_s=0.01),),
            argv=("serve", HOSTILE),
            env={"ODD": HOSTILE},
            resolved={"odd": HOSTILE},
            failure=Failure(kind="odd", cause=HOSTILE, log_tail=(HOSTILE,)),
        ),
    ]
    asked = msgspec.structs.replace(asked, model=msgspec.structs.replace(asked.model, path=HOSTILE))
    stored = run(asked, trials, environment={"host": HOSTILE, "reasons": {"gpus": HOSTILE}, "gpus": None, HOSTILE: 1})
    return msgspec.structs.replace(stored, folder=f"results/{HOSTILE.replace('/', '')}")


def hot() -> StoredRun:
    """One launch with two GPUs that tell of themselves, and one without."""
    asked = suite([variant("baseline"), variant("drafter", speculation=SPECULATION)], [Workload(name="chat")])
    seen = [
        Observation(
            at_s=at / 10,
            source="telemetry",
            name="gpus",
            value={
                "gpus": [
                    {
                        "index": gpu,
                        "power_w": 300.0 + at + 9 * gpu,
                        "sm_clock_mhz": 1980 - at,
                        "temperature_c": 40 + at // 10,
                    }
                    for gpu in (0, 1)
                ]
            },
        )
        for at in range(60)
    ]
    requests = [request(place, due_s=0.5 * place, drafts=(2, 2)) for place in range(8)]
    phases = (Phase(name="weights", at_s=0.05),)
    return run(
        asked, [trial("baseline", requests[:4]), trial("drafter", requests, seen, phases=phases, ready_s=0.2, ended_s=6.0)]
    )


PAGES = {
    "one cell": one_cell,
    "a hundred cells": hundred_cells,
    "only failures": only_failures,
    "hostile": hostile,
    "hot": hot,
}


def dossier(name: str) -> Dossier:
    """Of one of `PAGES`."""
    return dossier_of(PAGES[name]())
