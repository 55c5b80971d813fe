"""The prompts that ship with specbench, written for it: eight categories, some conversations of two turns.

An id stays with its prompt for ever. A prompt is never edited, only added under a new id: results of different
versions would otherwise share a name and not a meaning. `tests/unit/datasets/test_builtin.py` pins the file.
"""

import importlib.resources
from functools import cache
from typing import Final

from msgspec import json

from specbench.datasets import Dataset, Prompt, spread
from specbench.suite import Workload

FILE: Final = "_builtin.jsonl"


class Builtin:
    """The built-in prompts."""

    def prompts(self, workload: Workload, seed: int, count: int) -> tuple[Prompt, ...]:
        return spread(every_prompt(), workload.categories, seed, count)


@cache
def every_prompt() -> tuple[Prompt, ...]:
    """All of them, in the file's order."""
    data = importlib.resources.files("specbench.datasets").joinpath(FILE).read_bytes()
    return tuple(json.decode(line, type=Prompt) for line in data.splitlines())


DATASET: Final[Dataset] = Builtin()
