"""A suite file's plain value, the line of each of its parts, and all that is wrong with it."""

import difflib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from specbench.errors import Problem, SuiteError

Keys = tuple[str | int, ...]
"""The way to a part of the file: `("variants", 2, "speculation", "topk")`."""

QUOTED_LENGTH: Final = 60
"""Characters of the user's own text that a message repeats."""

LISTED_COUNT: Final = 24
"""Known words that a message lists."""


class Given(NamedTuple):
    """A value, and where the file gives it."""

    value: Any
    keys: Keys


class Document:
    """Filled in three passes: reading, structure, meaning. Each leaves its complaints, so that all are shown at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.value: Any = None
        self.lines: dict[Keys, int] = {(): 1}
        self.variables: set[str] = set()
        """Environment variables that the file names."""
        self.faulty: set[Keys] = set()
        """Parts already complained about; later passes leave them alone."""
        self._problems: set[Problem] = set()

    def line(self, keys: Keys) -> int:
        """The line of a part, or of the nearest part around it."""
        while keys not in self.lines:
            keys = keys[:-1]
        return self.lines[keys]

    def complain(self, keys: Keys, message: str, line: int | None = None) -> None:
        """The same sentence about the same line is kept once: an anchor may be used many times."""
        self.faulty.add(keys)
        self._problems.add(Problem(self.path, line or self.line(keys), message))

    def sound(self, keys: Keys) -> bool:
        """Whether neither a part nor anything around it has been complained about."""
        return not any(keys[:length] in self.faulty for length in range(len(keys) + 1))

    def get(self, *keys: str | int) -> Any:
        """A part's value; None when it is lacking or faulty."""
        value = self.value
        if not self.sound(keys):
            return None
        for key in keys:
            if isinstance(value, dict):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def fields(self, *keys: str | int) -> dict[str, Given]:
        """The sound members of a mapping; empty when there is none. An empty value counts as left out."""
        value = self.get(*keys)
        if not isinstance(value, dict):
            return {}
        return {
            key: Given(part, (*keys, key)) for key, part in value.items() if part is not None and self.sound((*keys, key))
        }

    def raise_problems(self) -> None:
        """Raises SuiteError when there was a complaint, sorted by line."""
        if self._problems:
            raise SuiteError(sorted(self._problems))


def quoted(text: str) -> str:
    """The user's text in quotes, cut short, with nothing in it that a terminal would obey."""
    return repr(text if len(text) <= QUOTED_LENGTH else text[: QUOTED_LENGTH - 1] + "…")


def nearest(text: str, known: Iterable[str]) -> str | None:
    """The known word most like `text`, if any is like it."""
    words = {word.lower(): word for word in known}
    found = difflib.get_close_matches(text.lower()[:QUOTED_LENGTH], words, n=1, cutoff=0.6)
    return words[found[0]] if found else None


def suggestion(text: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or all of them."""
    words = list(known)
    near = nearest(text, words)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; there are: {', '.join(words[:LISTED_COUNT])}" if words else ""
