"""A number without a unit in its name is a question to every reader: `timeout` of what?"""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest
from msgspec import inspect

from specbench.units import NAME_SUFFIXES

ROOMS: Final = ("suite", "plan", "records", "analysis", "dialects", "engines", "store")

UNITLESS: Final = {
    "concurrency": "streams at once; the word has no other meaning here",
    "launches": "a count by its plural",
    "seed": "no quantity",
    "burstiness": "shape of a gamma distribution; no unit",
    "temperature": "sampling; no unit",
    "port": "a name made of digits",
    "nccl_port": "a name made of digits",
    "gpu_hour_price": "the user's currency",
    "pid": "a name made of digits",
    "watcher_pid": "a name made of digits",
    "gpu_ids": "names made of digits",
    "topk": "the field's own word: branches a draft step",
    "ngram": "the field's own word: tokens matched",
    "steps": "the field's own word: draft steps",
    "tensor_parallel": "the field's own word: GPUs a model is split over",
    "schema_version": "a version",
    "admission_limit": "requests at once that a server admits",
    "decisive_line": "a line of a log, counted from 1",
    "lines": "lines of a log, counted from 1",
    "dp_ranks": "ranks' numbers",
    "exit_code": "a code",
    "status_code": "a code",
    "rank": "a rank's number under its name",
    "accept_histogram": "verify steps by accepted draft tokens",
    "accept_rate": "kept as printed: its meaning depends on the version",
    "running_requests": "a count by its plural",
    "queue_requests": "a count by its plural",
    "a": "side A's figure, its unit beside it",
    "b": "side B's figure, its unit beside it",
    "level": "a workload and its concurrency",
    "mean": "of log ratios; no unit",
    "sd": "of log ratios; no unit",
    "k": "the field's own word: tokens proposed a step",
    "per_position": "shares of steps, in the engines' own word",
    "last_useful_position": "a draft position, counted from 1",
    "line_kinds": "lines by kind",
    "unrecognised": "line numbers beside their text",
    "points": "seconds and values whose unit stands beside them",
    "warning_lines": "lines of a log, counted from 1",
}
"""Numeric fields that may do without, each with the reason."""

FREE_FORM: Final = {"args", "env", "extra", "value", "argv"}
"""Mappings and lists whose numbers are somebody else's, under somebody else's names."""


def structs() -> Iterator[type[msgspec.Struct]]:
    for room in ROOMS:
        package = importlib.import_module(f"specbench.{room}")
        names = [module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []), f"specbench.{room}.")]
        for module in [package, *map(importlib.import_module, names)]:
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__:
                    yield value


def is_numeric(kind: inspect.Type) -> bool:
    """Whether a field holds a number, several, or maps something to numbers."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            return True
        case inspect.UnionType(types=types):
            return any(is_numeric(each) for each in types)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item) | inspect.DictType(value_type=item):
            return is_numeric(item)
        case inspect.TupleType(item_types=items):
            return any(is_numeric(each) for each in items)
        case inspect.Metadata(type=inner):
            return is_numeric(inner)
        case _:
            return False


def numeric_fields(struct: type[msgspec.Struct]) -> list[str]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return [field.name for field in info.fields if is_numeric(field.type)]


def has_unit(name: str) -> bool:
    return f"_{name}".endswith(NAME_SUFFIXES) or name in UNITLESS or name in FREE_FORM


class Sample(msgspec.Struct):
    wait_s: float
    timeout: float | None
    sizes: tuple[int, ...]
    shares: dict[str, float]
    name: str
    on: bool


def test_a_bare_number_is_seen() -> None:
    assert numeric_fields(Sample) == ["wait_s", "timeout", "sizes", "shares"]
    assert [name for name in numeric_fields(Sample) if not has_unit(name)] == ["timeout", "sizes", "shares"]


def full_name(struct: type[msgspec.Struct]) -> str:
    return f"{struct.__module__}.{struct.__name__}"


STRUCTS: Final[list[type[msgspec.Struct]]] = list(dict.fromkeys(structs()))


@pytest.mark.parametrize("struct", STRUCTS, ids=full_name)
def test_numbers_carry_their_unit(struct: type[msgspec.Struct]) -> None:
    bare = [name for name in numeric_fields(struct) if not has_unit(name)]
    assert bare == [], f"{full_name(struct)}: end them in one of {', '.join(NAME_SUFFIXES)}"


def test_every_exception_is_still_needed() -> None:
    used = {name for struct in STRUCTS for name in numeric_fields(struct)}
    assert set(UNITLESS) - used == set()
