"""`${NAME}` and `${NAME:-default}` in the text of a suite file, and `$$` for a dollar sign."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

REFERENCE: Final = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<inner>[^{}]*)(?P<end>\}?))")
INNER: Final = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


class Expansion(NamedTuple):
    """A text with its variables replaced."""

    text: str
    names: tuple[str, ...]
    """Variables that the text names."""
    complaints: tuple[str, ...]


def expand(text: str, environ: Mapping[str, str]) -> Expansion:
    """Never raises: what can't be replaced stays as written, with a complaint. An empty variable counts as unset."""
    names: list[str] = []
    complaints: list[str] = []

    def replace(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        inner = INNER.fullmatch(match["inner"])
        if inner is None or not match["end"]:
            complaints.append("'${' begins a variable: write ${NAME} or ${NAME:-default}, and $$ for a dollar sign")
            return match[0]
        name, default = inner["name"], inner["default"]
        names.append(name)
        value = environ.get(name) or default
        if value is None:
            complaints.append(_unset(name, name in environ))
            return match[0]
        return value

    return Expansion(REFERENCE.sub(replace, text), tuple(names), tuple(complaints))


def _unset(name: str, empty: bool) -> str:
    state = "is empty" if empty else "is not set"
    return f"environment variable {name} {state}; export it or write ${{{name}:-folder}}"
