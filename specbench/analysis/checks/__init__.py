"""Doubts and faults, one file each: it ends with `CHECK`, and the file's name is the finding's code."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from specbench.analysis import Finding, Summary
from specbench.analysis.cells import Arm, Cell, Key
from specbench.store import StoredRun
from specbench.suite import Suite

__path__ = pkgutil.extend_path(__path__, __name__)


class Evidence(Struct, frozen=True, kw_only=True):
    """All that a check may look at."""

    suite: Suite
    stored: StoredRun
    arms: Mapping[str, Arm]
    """By variant, in the suite's order."""
    summaries: Sequence[Summary]
    codes: Mapping[str, tuple[str, ...]]
    """Verdicts by variant."""
    obstacles: Mapping[str, Mapping[Key, str]]
    """By variant: levels at which it can't be compared with the baseline, and why."""

    def rows(self, variant: str) -> list[Summary]:
        """One variant's cells."""
        return [row for row in self.summaries if row.variant == variant]

    def cells(self) -> Iterator[tuple[Arm, Cell]]:
        """Every cell that was driven."""
        for arm in self.arms.values():
            yield from ((arm, cell) for cell in arm.cells.values() if cell.requests)


class Check(Protocol):
    """Looks at a whole run; gives at most a few findings, never one a request."""

    def __call__(self, evidence: Evidence) -> Iterable[Finding]: ...


def names() -> tuple[str, ...]:
    """Every check found, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"))


def get(name: str) -> Check:
    """Raises ImportError when there is no such check."""
    check: Check = importlib.import_module(f"{__name__}.{name}").CHECK
    return check


def find(evidence: Evidence) -> list[Finding]:
    """What all checks say, by their names."""
    return [finding for name in names() for finding in get(name)(evidence)]
