"""Why two sides can't be compared: all reasons at once."""

from collections.abc import Iterator, Sequence

from specbench.analysis.comparing import PAIRS_LIMIT_COUNT, Difference, Refusal
from specbench.analysis.comparing.keys import differences, is_declared, keys_of
from specbench.analysis.comparing.launches import Side
from specbench.units import counted

SHOWN_LENGTH = 120
"""Characters of a value that are told."""
SIMULATION = ("simulation", "rehearsal")
"""Keys that only say again that one side is SIMULATED."""


def split_differences(a: Side, b: Side, factors: Sequence[str]) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Keys that differ: those under test, and those that must not."""
    found = differences(side_keys(a), side_keys(b))
    declared = tuple(one for one in found if is_declared(one.key, factors))
    return declared, tuple(one for one in found if one not in declared)


def side_keys(side: Side) -> dict[str, object]:
    """The comparability keys of one side."""
    return keys_of(side.run, side.suite, side.variant, [one.record for one in side.launches])


def refusals(a: Side, b: Side, pair_count: int, undeclared: Sequence[Difference], level_count: int) -> tuple[Refusal, ...]:
    """Empty when they can be compared."""
    return (
        *_simulated(a, b),
        *(_differs(one) for one in undeclared if one.key not in SIMULATION or a.simulated == b.simulated),
        *_shared(a, b),
        *_too_few(a, b, pair_count),
        *a.refusals,
        *b.refusals,
        *_without_level(pair_count, level_count),
    )


def alone(side: Side) -> tuple[str, ...]:
    """Why it could be compared with nothing at all: in sentences, empty when it is fit to be a reference."""
    count = len(side.launches)
    few = f"{_launches(side)} where {PAIRS_LIMIT_COUNT} are the least; ask for `launches: 5` or more in the suite"
    return (*([few] if count < PAIRS_LIMIT_COUNT else []), *(one.message for one in side.refusals))


def _simulated(a: Side, b: Side) -> Iterator[Refusal]:
    if a.simulated != b.simulated:
        one, other = ("A", "B") if a.simulated else ("B", "A")
        yield Refusal(code="simulated_against_real", message=f"{one} is SIMULATED and {other} was measured")


def _differs(found: Difference) -> Refusal:
    remedy = f"--factor {found.key} if that is what you test"
    a, b = (text if len(text) <= SHOWN_LENGTH else f"{text[:SHOWN_LENGTH]}…" for text in (found.a, found.b))
    return Refusal(code="differs", message=f"{found.key} differs: A has {a}, B has {b} ({remedy})")


def _shared(a: Side, b: Side) -> Iterator[Refusal]:
    known = {one.identity for one in a.launches}
    shared = [str(one.record.trial.launch_index) for one in b.launches if one.identity in known]
    if shared:
        yield Refusal(code="launches_shared", message=f"both sides hold the same launches: {', '.join(shared)}")


def _too_few(a: Side, b: Side, pair_count: int) -> Iterator[Refusal]:
    if pair_count < PAIRS_LIMIT_COUNT:
        counts = f"A has {_launches(a)}, B has {_launches(b)}"
        asks = f"{counted(pair_count, 'pair')} of launches where {PAIRS_LIMIT_COUNT} are the least: {counts}"
        yield Refusal(code="too_few_launches", message=f"{asks}; ask for `launches: 5` or more in the suite")


def _launches(side: Side) -> str:
    return f"{len(side.launches)} of '{side.variant.name}'"


def _without_level(pair_count: int, level_count: int) -> Iterator[Refusal]:
    if pair_count and not level_count:
        yield Refusal(code="level_missing", message="no level was recorded whole in every launch of both sides")
