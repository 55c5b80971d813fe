"""One file a check: it ends with `CHECK`. A file may give several codes that belong together."""

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Protocol

from specbench.analysis import Finding
from specbench.preflight import Facts

__path__ = pkgutil.extend_path(__path__, __name__)


class Check(Protocol):
    """Looks at one launch. Keeps silent when a fact that it needs is not known."""

    def __call__(self, facts: Facts) -> Iterable[Finding]: ...


def names() -> tuple[str, ...]:
    """Every check found, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"))


def get(name: str) -> Check:
    """Raises ImportError when there is no such check."""
    check: Check = importlib.import_module(f"{__name__}.{name}").CHECK
    return check
