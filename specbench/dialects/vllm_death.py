"""Why a vLLM server died: the first cause in its log, not the last line. Lines are read once and not kept."""

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from specbench.dialects import DeathCause
from specbench.dialects.messages import EXCEPTION, Cause, tidy
from specbench.dialects.vllm_causes import CAUSES, CONSEQUENCE, is_fault
from specbench.dialects.vllm_events import event
from specbench.dialects.vllm_log import strip

ECHO = re.compile(r"Received request |Added request |Dumping (?:input|scheduler)")
SHUTDOWN = re.compile(r"\[shutdown\] .*trigger|Shutting down")


class DeathWatch:
    """Takes the lines one by one and remembers the first that names a cause."""

    def __init__(self) -> None:
        self.ready = False
        self._found: tuple[int, int, Cause, dict[str, Any], str] | None = None
        self._exception: tuple[int, str] | None = None
        self._drafter = ""
        self._stopped = False

    def add(self, number: int, line: str) -> None:
        """`number` is 1-based."""
        text = strip(line)[0]
        known = event(text)
        if known is not None:
            self.ready = self.ready or known.kind == "ready"
            self._drafter = str(known.value.get("drafter", self._drafter))
        if SHUTDOWN.match(text) and self._exception is None and self._found is None:
            self._stopped = True  # whatever fails after an ordered stop is no cause
        if self._stopped or ECHO.match(text) or not is_fault(f"{'ERROR ' if 'ERROR' in line else ''}{text}"):
            return
        self._fault(number, text)

    def _fault(self, number: int, text: str) -> None:
        for cause in CAUSES:
            found = cause.pattern.search(text)
            if found is not None:
                if self._found is None or cause.order < self._found[0]:
                    values = {name: _number(word) for name, word in found.groupdict().items() if word}
                    self._found = (cause.order, number, cause, values, text)
                return
        if self._exception is None and EXCEPTION.match(text) and not CONSEQUENCE.search(text):
            self._exception = (number, text)

    def cause(self, exit_code: int | None = None) -> DeathCause:
        """`unknown` when no line names one."""
        if self._found is not None:
            return self._named(*self._found[1:])
        if self._exception is not None:
            number, text = self._exception
            return DeathCause(code="exception", sentence=f"it died of {text[:300]}", decisive_line=number)
        code = "" if exit_code is None else f" (exit code {exit_code})"
        return DeathCause(code="unknown", sentence=f"the log names no cause, only consequences{code}")

    def _named(self, number: int, cause: Cause, values: dict[str, Any], text: str) -> DeathCause:
        code, sentence = cause.code, cause.sentence
        values = tidy(values)
        if code == "gpu_memory_not_free":
            values["held_by_others_gib"] = round(values["total_gib"] - values["free_gib"], 2)
            sentence += (
                f" ({values['free_gib']:g} of {values['total_gib']:g} GiB are free, {values['wanted_gib']:g} are wanted)"
            )
        elif code == "path_missing":
            path = PurePath(str(values.get("path", "")))
            is_drafter = bool(self._drafter) and PurePath(self._drafter) in (path, *path.parents)
            code = "draft_path_missing" if is_drafter else "model_path_missing"
            sentence = "the drafter's folder or repository does not exist" if is_drafter else sentence
        else:
            sentence += f" ({text[:200]})"
        if self.ready:
            sentence += "; the server had said that it was ready"
        return DeathCause(code=code, sentence=sentence, decisive_line=number, values=values, advice=cause.advice)


def diagnose(lines: Iterable[str], exit_code: int | None = None) -> DeathCause:
    """The cause, from the log. Never raises."""
    return watch(lines).cause(exit_code)


def started(lines: Iterable[str]) -> bool:
    """Whether the log says that requests are welcome."""
    return watch(lines).ready


def watch(lines: Iterable[str]) -> DeathWatch:
    """All lines, once."""
    one = DeathWatch()
    for number, line in enumerate(lines, start=1):
        one.add(number, line)
    return one


def _number(word: str) -> float | int | str:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word
