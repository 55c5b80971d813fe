"""The first answers of a level took far longer than the rest: something still warmed up while it was measured."""

from collections.abc import Iterable
from statistics import median
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.cells import Load
from specbench.analysis.checks import Check, Evidence
from specbench.records import RequestRecord
from specbench.timing import tpot_s
from specbench.units import Second

FACTOR: Final = 1.5
"""The first wave's time a step over that of the later ones."""
FEWEST_LATER: Final = 3


def check(evidence: Evidence) -> Iterable[Finding]:
    """At most one a variant, about the level where it shows most. Each launch's first level alone can show it."""
    for name, arm in evidence.arms.items():
        found = [
            (ratio, cell) for cell in arm.cells.values() for load in cell.loads if (ratio := _ratio(load, cell.concurrency))
        ]
        worst = max(found, key=lambda one: one[0], default=None)
        if worst is None or worst[0] < FACTOR:
            continue
        ratio, cell = worst
        yield Finding(
            code="warmup_in_window",
            severity="warning",
            variant=name,
            message=f"The first answers took {ratio:.1f} × as long a step as the later ones ({cell.workload} at "
            f"{cell.concurrency}): kernels were compiled or graphs captured while it was measured.",
            evidence=f"median time a step (TPOT × AL) of the first wave ({max(1, cell.concurrency)} of each launch) "
            "against the later ones",
            remedy="Raise `request_count` under `warmup` in the suite, or start the server with its own warm-up.",
        )


def _ratio(load: Load, concurrency: int) -> float | None:
    """First wave over the rest; None where there are too few. Failed requests are left out."""
    served = sorted((one for one in load.requests if one.error is None), key=lambda one: one.sent_s)
    times = [value for one in served if (value := _step_s(one)) is not None]
    wave = max(1, concurrency)
    if len(times) < wave + max(FEWEST_LATER, wave):
        return None
    later_s = median(times[wave:])
    return median(times[:wave]) / later_s if later_s > 0 else None


def _step_s(request: RequestRecord) -> Second | None:
    """TPOT alone would tell prompts apart by what is accepted of them."""
    one_s = tpot_s(request)
    if one_s is None or not request.verify_count or request.correct_tokens is None:
        return one_s
    return one_s * (1 + request.correct_tokens / request.verify_count)


CHECK: Final[Check] = check
