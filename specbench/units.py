"""Base units. Every number in a record is in one of these; scaling happens only in `render`."""

from typing import Final

Second = float
"""Seconds. Inside a trial they count from the trial's start on one monotonic clock."""

Ratio = float
"""A fraction, 0 to 1 unless its docstring says otherwise. Percent exists only in `render`."""

PerSecond = float
"""Events per second: `_tps` for tokens, `_rps` for requests."""

NAME_SUFFIXES: Final = (
    "_s",
    "_tokens",
    "_bytes",
    "_rps",
    "_tps",
    "_ratio",
    "_count",
    "_index",
    "_length",
)
"""The endings that a numeric field's name may have; `tests/unit/test_units_in_names.py` holds every record to them."""
