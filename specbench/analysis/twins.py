"""A variant without a drafter that differs from one with it in nothing else: the other half of what a switch costs."""

from collections.abc import Mapping, Sequence

from specbench.analysis import Summary
from specbench.analysis.cells import Arm
from specbench.analysis.sentences import place


def twin(arm: Arm, arms: Mapping[str, Arm], baseline: str) -> Arm | None:
    """The plain arm with this one's settings, when that is another than the baseline."""
    own = arm.variant
    if own.speculation is None:
        return None
    plain = (one for name, one in arms.items() if name != baseline and one.variant.speculation is None)
    settings = (own.engine, own.cuda_graph, own.server)
    return next((one for one in plain if (one.variant.engine, one.variant.cuda_graph, one.variant.server) == settings), None)


def beside(name: str, rows: Sequence[Summary], plain: Sequence[Summary]) -> str:
    """How much faster than its twin a variant is, at the levels where both stand beside the baseline; empty without any."""
    bases = {(row.workload, row.concurrency): row.speedup_ratio for row in plain}
    pairs = [(row, row.speedup_ratio, bases.get((row.workload, row.concurrency))) for row in rows]
    found = sorted(((own / base, place(row)) for row, own, base in pairs if own and base), key=lambda one: one[0])
    if not found:
        return ""
    (low, slow), (high, fast) = found[0], found[-1]
    span = f"{high:.2f}× on {fast}" if len(found) == 1 else f"{low:.2f}× ({slow}) to {high:.2f}× ({fast})"
    return f"; beside {name}, which lacks the drafter alone: {span}"
