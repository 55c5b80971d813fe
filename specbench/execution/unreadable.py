"""How a reader of the environment says that it can't, and why."""

from collections.abc import Callable, Mapping
from typing import Any


class UnreadableError(Exception):
    """Why a value is null."""


def read_all(readers: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Names and their values; `reasons` says why a value is null."""
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name, read in readers.items():
        try:
            values[name] = read()
        except (UnreadableError, OSError, ValueError) as error:
            values[name], reasons[name] = None, str(error) or type(error).__name__
    return {**values, "reasons": reasons}
