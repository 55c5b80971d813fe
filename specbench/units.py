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


def counted(count: int, noun: str, verbs: str = "") -> str:
    """`1 launch`, `2 launches`, `0 entries`: so many of a thing, for a person. `noun` in the singular; `verbs` as `is/are`
    puts the one that agrees behind it."""
    one, _, several = verbs.partition("/")
    verb = f" {one if count == 1 else several}" if verbs else ""
    if count == 1:
        return f"1 {noun}{verb}"
    if noun.endswith("y"):
        return f"{count} {noun[:-1]}ies{verb}"
    return f"{count} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}{verb}"


def span(low: object, high: object) -> str:
    """`4 to 6`, or `4` where both read the same. Anything that prints as it is to be read."""
    return str(low) if str(low) == str(high) else f"{low} to {high}"
