"""A document held against the JSON Schema; each of its errors said in our words."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from specbench.suite.document import Document, Keys, nearest, quoted, suggestion
from specbench.suite.faults import FAULT_PATTERN, FAULTS
from specbench.suite.rehearsal import VERSION_PATTERN
from specbench.suite.scaling import TIME_PATTERN
from specbench.suite.schema import suite_schema
from specbench.suite.types import NAME_PATTERN, VARIABLE_PATTERN

KINDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
RULES: Final = {
    FAULT_PATTERN: f"is no fault of the simulated server; there are: {', '.join(FAULTS)} (some take a number: http_500:3)",
    NAME_PATTERN: "is no name: letters, digits and . _ + - only, beginning with a letter or digit, 80 at most",
    TIME_PATTERN: "is no time limit as Slurm takes it, such as 4:00:00 or 1-12:00:00",
    VERSION_PATTERN: "is no version of SGLang, such as 0.5.23 or 0.5.10.post1",
    VARIABLE_PATTERN: "is no environment variable's name: letters, digits and _ only, not beginning with a digit",
}


class Fault(NamedTuple):
    """What the validator says of one part."""

    keyword: str
    """The schema's keyword that the part does not satisfy."""
    wanted: Any
    """That keyword's value."""
    value: Any
    keys: Keys
    known: tuple[str, ...]
    """Keys that the schema has at this place."""
    about_key: bool
    """It is the key that is wrong, not what stands under it."""
    branches: tuple[tuple["Fault", ...], ...]
    """Of `anyOf`: the faults by branch."""


def check_structure(document: Document) -> None:
    """Leaves a complaint for every part whose shape is wrong."""
    for fault in _faults(document.value):
        _report(document, fault)


def _faults(value: Any) -> Iterator[Fault]:
    from jsonschema import validators  # slow to import: only a suite's reader pays for it

    untyped: Any = validators
    draft = untyped.Draft202012Validator
    kinds = draft.TYPE_CHECKER.redefine("integer", lambda _, one: type(one) is int)  # 8.0 is none
    validator = untyped.extend(draft, type_checker=kinds)(suite_schema())
    return map(_fault, validator.iter_errors(value))


def _fault(error: Any) -> Fault:
    branches: dict[int, list[Fault]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(_fault(inner))
    return Fault(
        keyword=error.validator,
        wanted=error.validator_value,
        value=error.instance,
        keys=tuple(error.absolute_path),
        known=tuple(error.schema.get("properties", ())),
        about_key="propertyNames" in error.absolute_schema_path,
        branches=tuple(map(tuple, branches.values())),
    )


def _report(document: Document, fault: Fault) -> None:
    if not document.sound(fault.keys):
        return
    if fault.keyword == "additionalProperties":
        _report_unknown(document, fault)
    elif fault.keyword == "required":
        for name in fault.wanted:
            if name not in fault.value:
                document.complain((*fault.keys, name), f"key {name!r} is missing{_place(fault.keys)}")
    elif fault.keyword == "anyOf":
        _report_union(document, fault)
    elif fault.about_key:
        document.complain((*fault.keys, fault.value), f"{quoted(fault.value)} {RULES[fault.wanted]}")
    else:
        document.complain(fault.keys, SENTENCES[fault.keyword](_label(fault.keys), fault))


def _report_unknown(document: Document, fault: Fault) -> None:
    for name in fault.value:
        keys = (*fault.keys, name)
        if name not in fault.known and document.sound(keys) and not (len(keys) == 1 and name.startswith("x-")):
            document.complain(keys, f"unknown key {quoted(name)}{suggestion(name, fault.known)}")


def _report_union(document: Document, fault: Fault) -> None:
    """Follows the branch that the value's type was meant for; where there is none, says what types would do."""
    for faults in fault.branches:
        if not any(inner.keyword == "type" and inner.keys == fault.keys for inner in faults):
            for inner in faults:
                _report(document, inner)
            return
    kinds = [branch.get("type", "object") for branch in fault.wanted]
    document.complain(fault.keys, _wrong_kind(_label(fault.keys), kinds, fault.value))


def _wrong_kind(label: str, kinds: Iterable[str], value: Any) -> str:
    wanted = [KINDS[kind] for kind in kinds if kind != "null"]
    if "a number" in wanted:
        wanted = [kind for kind in wanted if kind != "a whole number"]
    sentence = f"{label} must be {' or '.join(wanted)}, not {_shown(value)}"
    if "text" in wanted and isinstance(value, bool | int | float):
        return sentence + "; put quotes around it"
    if wanted == ["a list"] and isinstance(value, bool | int | float):
        return sentence + f"; write [{_shown(value)}]"
    return sentence


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return str(value)


def _label(keys: Keys) -> str:
    if not keys:
        return "the file"
    last = keys[-1]
    return quoted(last) if isinstance(last, str) else f"entry {last + 1} of {_label(keys[:-1])}"


def _place(keys: Keys) -> str:
    return f" in {_label(keys)}" if keys else ""


def _enum(label: str, fault: Fault) -> str:
    near = nearest(fault.value, fault.wanted) if isinstance(fault.value, str) else None
    end = f"; did you mean {near!r}?" if near else ""
    return f"{label} must be one of {', '.join(fault.wanted)}, not {_shown(fault.value)}{end}"


def _bound(words: str) -> Callable[[str, Fault], str]:
    return lambda label, fault: f"{label} must be {words} {fault.wanted}, not {_shown(fault.value)}"


SENTENCES: Final[dict[str, Callable[[str, Fault], str]]] = {
    "type": lambda label, fault: _wrong_kind(label, [fault.wanted], fault.value),
    "enum": _enum,
    "pattern": lambda label, fault: f"{label}: {quoted(fault.value)} {RULES[fault.wanted]}",
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "exclusiveMinimum": _bound("more than"),
    "exclusiveMaximum": _bound("less than"),
    "maxLength": lambda label, fault: f"{label} has more than {fault.wanted} characters",
    "minLength": lambda label, _: f"{label} is empty",
    "minItems": lambda label, _: f"{label} is empty; give at least one entry",
    "maxItems": lambda label, fault: f"{label} has {len(fault.value)} entries; {fault.wanted} at most",
    "minProperties": lambda label, _: f"{label} is empty; give at least one key",
    "uniqueItems": lambda label, _: f"{label} holds the same entry twice",
}
"""One sentence a keyword; a test holds them complete for the keywords that the schema uses."""
