"""The payload of one server-sent event, as every OpenAI-like server writes it: a JSON object of counts and texts."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

LARGEST_COUNT: Final = 1_000_000_000
"""Tokens or steps of one request; more is garbage."""
_DECODER: Final = msgspec.json.Decoder()


def object_of(data: bytes) -> dict[str, Any]:
    """Raises ValueError in a few words when it is no JSON object."""
    try:
        event = _DECODER.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"an event that is no JSON ({error}): {data[:120]!r}") from None
    if not isinstance(event, dict):
        raise ValueError(f"an event that is no JSON object: {data[:120]!r}")
    return event


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Itself where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def count_of(value: Any) -> int | None:
    """A whole number that can be one, or None."""
    return value if type(value) is int and 0 <= value <= LARGEST_COUNT else None
