"""SGLang's command-line flags, and which versions know them.

The table was read from the package sources of 0.4.6, 0.4.6.post5, 0.4.7, 0.4.8, 0.4.9, 0.5.3, 0.5.4, 0.5.6, 0.5.8 to
0.5.14, 0.5.16, 0.5.19, 0.5.20 and 0.5.23. A change between two of them is dated to the later one.
"""

import functools
import importlib.resources
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct
from packaging.version import Version

FILE: Final = "sglang_flags.json"
SHORT: Final = {
    "--tp": "tp_size",
    "--dp": "dp_size",
    "--speculative-algo": "speculative_algorithm",
    "--speculative-draft-model": "speculative_draft_model_path",
}
"""Unique beginnings in common use. SGLang's parser takes any unique beginning, ours these only."""

Kind = Literal["switch", "text", "int", "float", "texts", "ints", "floats", "maybe"]


class Flag(Struct, frozen=True, forbid_unknown_fields=True):
    """How a flag is written. Plural kinds take one value or more; `maybe` takes one or none."""

    kind: Kind
    attribute: str | None = None
    """SGLang's name for the value, where it is not the flag's own."""
    since: str | None = None
    """First version read that knows it; None: 0.4.6 does."""
    until: str | None = None
    """First version read that no longer knows it; None: 0.5.23 does."""

    def known(self, version: Version) -> bool:
        """Whether this version's parser has it."""
        since = self.since is None or version >= Version(self.since)
        return since and (self.until is None or version < Version(self.until))


class Option(Struct, frozen=True):
    """Every spelling of one attribute."""

    names: tuple[str, ...]
    kind: Kind


@functools.cache
def table() -> Mapping[str, Flag]:
    """By flag."""
    data = importlib.resources.files("specbench.embedded").joinpath(FILE).read_bytes()
    return msgspec.json.decode(data, type=dict[str, Flag])


def options(version: Version) -> dict[str, Option]:
    """What this version takes, by SGLang's attribute name."""
    names: dict[str, list[str]] = {}
    kinds: dict[str, Kind] = {}
    for name, flag in table().items():
        if flag.known(version):
            attribute = flag.attribute or _attribute(name)
            names.setdefault(attribute, []).append(name)
            if attribute not in kinds or flag.attribute is None:
                kinds[attribute] = flag.kind
    for name, attribute in SHORT.items():
        if attribute in names and name not in names[attribute]:
            names[attribute].append(name)
    return {attribute: Option(_main_first(spellings, attribute), kinds[attribute]) for attribute, spellings in names.items()}


def _main_first(spellings: list[str], attribute: str) -> tuple[str, ...]:
    """argparse names an option by its first spelling."""
    return tuple(sorted(spellings, key=lambda one: _attribute(one) != attribute))


def _attribute(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
