"""Where prompts come from. One file a dataset, ending with `DATASET`; the file's name is the name in YAML."""

import difflib
import hashlib
import importlib
import itertools
import pkgutil
from collections.abc import Iterator, Sequence
from random import Random
from typing import Protocol

from msgspec import Struct, json

from specbench.errors import SpecbenchError
from specbench.suite import Workload

__path__ = pkgutil.extend_path(__path__, __name__)


class Prompt(Struct, frozen=True, kw_only=True):
    """One conversation. `turns` are the user's; each answer is put between before the next is sent."""

    id: str
    """Stable across versions and orders."""
    category: str
    turns: tuple[str, ...]
    system: str | None = None


class Dataset(Protocol):
    """A source of prompts. One that can tell where they came from has `source(workload)` too: words for run.json."""

    def prompts(self, workload: Workload, seed: int, count: int) -> tuple[Prompt, ...]:
        """`count` prompts, the same for the same seed, spread over the workload's categories; repeats only when
        the source is smaller. Raises SpecbenchError in one sentence (file:line) when the source is bad."""
        ...


def names() -> tuple[str, ...]:
    """Every dataset found, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"))


def get(name: str) -> Dataset:
    """Raises SpecbenchError when there is no such dataset."""
    if name not in names():
        raise SpecbenchError(f"dataset '{name}' does not exist; there are: {', '.join(names())}")
    dataset: Dataset = importlib.import_module(f"{__name__}.{name}").DATASET
    return dataset


def categories(prompts: Sequence[Prompt]) -> tuple[str, ...]:
    """The categories of these prompts, in the order of their first appearance."""
    return tuple(dict.fromkeys(prompt.category for prompt in prompts))


def spread(prompts: Sequence[Prompt], wanted: Sequence[str], seed: int, count: int) -> tuple[Prompt, ...]:
    """`count` prompts, one from each wanted category in turn (all categories when none is named).

    The first n of m prompts are the same for every m. Raises SpecbenchError for a category that isn't there.
    """
    chosen = tuple(dict.fromkeys(wanted)) or categories(prompts)
    for name in chosen:
        demand_category(name, categories(prompts))
    piles = [_shuffled([prompt for prompt in prompts if prompt.category == name], name, seed) for name in chosen]
    return tuple(itertools.islice(itertools.cycle(_round_robin(piles)), count))


def digest(prompts: Sequence[Prompt]) -> str:
    """sha256, in hexadecimal, of these prompts in this order."""
    return hashlib.sha256(json.encode(prompts)).hexdigest()


def _shuffled(pile: list[Prompt], category: str, seed: int) -> list[Prompt]:
    """A category's order depends on the seed and on nothing else in the workload."""
    Random(f"{seed}:{category}").shuffle(pile)
    return pile


def _round_robin(piles: Sequence[Sequence[Prompt]]) -> Iterator[Prompt]:
    for layer in itertools.zip_longest(*piles):
        yield from (prompt for prompt in layer if prompt is not None)


def demand_category(name: str, known: Sequence[str]) -> None:
    """Raises SpecbenchError when there is no such category."""
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? There" if near else "there"
    raise SpecbenchError(f"category '{name}' does not exist; {hint} are: {', '.join(known)}")
