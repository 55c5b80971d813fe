"""Faults that the simulated server commits on request: their names, what the number behind them means, and its default.

`crash_under_load`, or `crash_under_load:8` with a number of one's own. `docs/faults.md` says what becomes of each.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta


class Kind(NamedTuple):
    """What one fault does."""

    description: str
    number: float | None = None
    """None: it takes no number."""


AT = "at request N of the launch"
EVERY = "every N-th request"
FAULTS: Final[Mapping[str, Kind]] = {
    "crash_loading": Kind("dies while it loads weights"),
    "crash_graph_capture": Kind("dies while it captures CUDA graphs"),
    "hang_loading": Kind("never ends loading"),
    "slow_start": Kind("loads N seconds longer", 5),
    "slow_steps": Kind("takes N percent longer for every step and prefill", 5),
    "crash_first_request": Kind("dies when the first request comes"),
    "crash_under_load": Kind(f"dies in the middle of an answer, {AT}", 5),
    "hang_under_load": Kind(f"accepts and never answers any more, {AT} and from then on", 5),
    "never_stops": Kind("ignores SIGTERM and SIGINT"),
    "reset": Kind(f"resets the connection in the middle of an answer, {EVERY}", 1),
    "http_429": Kind(f"answers 429, {EVERY}", 1),
    "http_500": Kind(f"answers 500, {EVERY}", 1),
    "garbage": Kind(f"sends half an event as if it were whole, {EVERY}", 1),
    "log_deleted": Kind(f"deletes its own log file, {AT}", 3),
    "log_rotated": Kind(f"renames its log file and goes on in a new one, {AT}", 3),
    "log_truncated": Kind(f"empties its log file and goes on in it, {AT}", 3),
}
FAULT_PATTERN: Final = rf"^({'|'.join(FAULTS)})(:[0-9]{{1,6}}(\.[0-9]{{1,3}})?)?$(?!\n)"
Fault = Annotated[str, Meta(pattern=FAULT_PATTERN)]


def numbers_of(words: Sequence[str]) -> dict[str, float]:
    """The number of each fault by name; 0 where it takes none. Raises ValueError in one sentence."""
    found: dict[str, float] = {}
    for word in words:
        name, colon, number = word.partition(":")
        if name not in FAULTS:
            raise ValueError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
        kind = FAULTS[name]
        if colon and kind.number is None:
            raise ValueError(f"the fault {name} takes no number")
        try:
            found[name] = float(number) if colon else kind.number or 0.0
        except ValueError:
            raise ValueError(f"the fault {word!r} must end with a number, as in {name}:{kind.number:g}") from None
        if colon and found[name] < 1:
            raise ValueError(f"the number of the fault {name} must be at least 1")
    return found
