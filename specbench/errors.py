"""What a user's mistake raises. A failed request or trial is a recorded value instead, a doubt is a `Finding`."""

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One mistake in a file: where it is and one sentence on what is wrong and what would be right."""

    path: str
    line: int
    """1-based; 0 when the mistake belongs to the whole file."""
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


class SpecbenchError(Exception):
    """Anything that the user can put right. Its text is the whole message; the CLI prints it and exits with 2."""


class SuiteError(SpecbenchError):
    """A suite file that can't be used. Carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class LaunchError(SpecbenchError):
    """A server that did not become ready, or died. `log_tail` holds the last lines of its log, oldest first."""

    def __init__(self, kind: str, cause: str, log_tail: Sequence[str] = ()) -> None:
        self.kind = kind
        self.cause = cause
        self.log_tail = tuple(log_tail)
        super().__init__(cause)


class StoreError(SpecbenchError):
    """A results folder that can't be read or written."""
