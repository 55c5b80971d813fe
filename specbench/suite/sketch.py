"""Variants as the file gives them, named or by matrix, each value still with its place in the file."""

import itertools
import math
import string
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from specbench.suite.document import Document, Given, Keys, quoted, suggestion

MAX_VARIANTS: Final = 1000
SPECULATION_AXES: Final = ("drafter", "method", "draft_tokens", "steps", "topk")
LABELS: Final = {"draft_tokens": "d{}", "steps": "s{}", "topk": "k{}", "tensor_parallel": "tp{}"}
"""How a value of an axis shows in a name made from the axes; other axes show the value alone."""

Combination = dict[str, Given]
"""One value for each axis."""


class Sketch(NamedTuple):
    """A variant before it is judged. Faulty parts are left out of it."""

    name: Given | None
    keys: Keys
    fields: dict[str, Given]
    speculation: dict[str, Given] | None
    speculation_keys: Keys


class Sketches(NamedTuple):
    """All variants that could be read."""

    found: tuple[Sketch, ...]
    complete: bool
    """False when a fault kept a variant or a name out: names can't be judged then."""


def sketch_variants(document: Document) -> Sketches:
    """Named variants first, then the matrix, as in the file. Complains about the matrix's own faults."""
    named = list(_named(document))
    crossed = list(_crossed(document))
    whole = all(one.name for one in (*named, *crossed)) and not any(
        (keys[:1] in (("variants",), ("matrix",)) and len(keys) <= 2) or keys[:2] == ("matrix", "axes")
        for keys in document.faulty
    )
    return Sketches((*named, *crossed), whole)


def _named(document: Document) -> Iterator[Sketch]:
    for index in range(len(document.get("variants") or ())):
        keys: Keys = ("variants", index)
        fields = document.fields(*keys)
        if fields:
            yield _sketch(document, fields.pop("name", None), keys, fields)


def _sketch(document: Document, name: Given | None, keys: Keys, fields: dict[str, Given]) -> Sketch:
    given = fields.pop("speculation", None)
    speculation_keys = (*keys, "speculation")
    speculation = document.fields(*speculation_keys) if given else None
    return Sketch(name, keys, fields, speculation, speculation_keys)


def _crossed(document: Document) -> Iterator[Sketch]:
    axes = _axes(document)
    if not axes:
        return
    combinations = list(_combinations(document, axes))
    template = _template(document, axes)
    base = _sketch(document, None, ("matrix", "base"), document.fields("matrix", "base"))
    for combination in combinations:
        yield _cross(base, combination, template)


def _axes(document: Document) -> dict[str, list[Given]]:
    """The sound values of each axis, in the file's order; empty when they make too many variants."""
    axes: dict[str, list[Given]] = {}
    for axis, given in document.fields("matrix", "axes").items():
        values = [Given(value, (*given.keys, index)) for index, value in enumerate(given.value)]
        axes[axis] = [one for one in values if document.sound(one.keys)]
    count = math.prod(len(values) for values in axes.values())
    if count > MAX_VARIANTS:
        document.complain(("matrix", "axes"), f"the axes make {count} variants; at most {MAX_VARIANTS} are allowed")
        return {}
    return axes


def _combinations(document: Document, axes: Mapping[str, list[Given]]) -> Iterator[Combination]:
    combinations = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    exclusions = _exclusions(document)
    kept = [one for one in combinations if not any(_matches(one, entry) for _, entry in exclusions)]
    for keys, entry in exclusions if _axes_sound(document) else ():
        if not any(_matches(one, entry) for one in combinations):
            said = ", ".join(f"{axis}: {_written(value)}" for axis, value in entry.items())
            document.complain(keys, f"this excludes nothing: no combination has {said}")
    if combinations and not kept:
        document.complain(("matrix", "exclude"), "the matrix excludes every variant that it makes")
    yield from kept


def _axes_sound(document: Document) -> bool:
    return not any(keys[:2] == ("matrix", "axes") for keys in document.faulty)


def _exclusions(document: Document) -> list[tuple[Keys, dict[str, Any]]]:
    written = document.value["matrix"]["axes"]
    exclusions = []
    for index in range(len(document.get("matrix", "exclude") or ())):
        keys: Keys = ("matrix", "exclude", index)
        entry = document.get(*keys)
        if not isinstance(entry, dict) or any(faulty[:3] == keys for faulty in document.faulty):
            continue
        foreign = [axis for axis in entry if axis not in written]
        for axis in foreign:
            document.complain((*keys, axis), f"the matrix has no axis {axis!r}{suggestion(axis, written)}")
        if entry and not foreign:
            exclusions.append((keys, entry))
    return exclusions


def _matches(combination: Combination, entry: Mapping[str, Any]) -> bool:
    """An axis that the combination lacks was faulty, and matches nothing."""
    return all(axis in combination and combination[axis].value == value for axis, value in entry.items())


def _template(document: Document, axes: Mapping[str, list[Given]]) -> str | None:
    """The template of names; None when it can't be used."""
    keys: Keys = ("matrix", "name")
    template = document.get(*keys)
    if template is None:
        default = "-".join(LABELS.get(axis, "{}").replace("{}", f"{{{axis}}}") for axis in axes)
        return default if document.sound(keys) else None
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        document.complain(keys, f"{quoted(template)} is no template: {error}")
        return None
    written = document.value["matrix"]["axes"]
    for _, axis, form, conversion in parts:
        if axis is not None and (axis not in written or form or conversion):
            document.complain(
                keys, f"the template may hold the matrix's axes only, not {{{axis}}}{suggestion(axis, written)}"
            )
            return None
    return str(template) if all(axis in axes for _, axis, _, _ in parts if axis is not None) else None


def _cross(base: Sketch, combination: Combination, template: str | None) -> Sketch:
    fields = base.fields | {axis: given for axis, given in combination.items() if axis not in SPECULATION_AXES}
    speculation = {axis: given for axis, given in combination.items() if axis in SPECULATION_AXES}
    name = None
    if template is not None:
        words = {axis: _word(axis, given.value) for axis, given in combination.items()}
        name = Given(template.format_map(words), ("matrix", "name"))
    both = {**(base.speculation or {}), **speculation}
    wanted = base.speculation is not None or bool(speculation)
    return Sketch(name, ("matrix",), fields, both if wanted else None, base.speculation_keys)


def _word(axis: str, value: Any) -> str:
    if axis == "cuda_graph":
        return "graphs" if value else "eager"
    return str(value)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
