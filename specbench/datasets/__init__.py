"""Where prompts come from. One file a dataset, ending with `DATASET`; the file's name is the name in YAML."""

import importlib
import pkgutil
from typing import Protocol

from msgspec import Struct

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
    """A source of prompts."""

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
