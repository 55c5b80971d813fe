"""Holds a run on a real engine to what it must show: python -m tests.realengine.outcome RESULTS-FOLDER

Nothing here is a fixed speed: verdicts on speed must follow from the measured numbers. Exit code 1 and a line for each
thing that is not so.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from specbench.analysis.cells import arms_of, suite_of
from specbench.analysis.metrics import counted_accept_length, logged_accept_length, pooled_accept_length
from specbench.store import StoredRun, read_run
from tests.realengine import outcome_llamacpp, outcome_vllm

FAULTS: Final[dict[str, Callable[[StoredRun], Iterator[str]]]] = {
    "vllm-cpu": outcome_vllm.faults,
    "llamacpp": outcome_llamacpp.faults,
}
"""A sentence each, by the suite's name."""


def told(stored: StoredRun) -> Iterator[str]:
    """AL of each level by its three sources, and how many answers are the baseline's."""
    arms = arms_of(suite_of(stored), stored.trials)
    for name, arm in arms.items():
        for key, cell in arm.cells.items():
            if not arm.is_asked_to_draft or not cell.served:
                continue
            plain = {one.prompt_id: one.output_text for one in arms["baseline"].cells[key].served}
            same = sum(one.output_text == plain.get(one.prompt_id) for one in cell.served)
            sources = (pooled_accept_length(cell.served), counted_accept_length(cell), logged_accept_length(cell))
            lengths = " ".join("    –" if one is None else f"{one:5.3f}" for one in sources)
            place = f"{name:25} {key[0]:7} {key[1]}"
            yield f"{place}  AL answers, metrics, log: {lengths}  same answers {same}/{len(cell.served)}"


def main(folder: str) -> int:
    """0 when all is as it must be."""
    stored = read_run(Path(folder))
    for line in told(stored):
        sys.stdout.write(f"{line}\n")
    found = list(FAULTS[stored.run.suite_name](stored))
    for line in found:
        sys.stderr.write(f"NOT RIGHT: {line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
