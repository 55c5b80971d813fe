"""A drafter that a server loaded, or was told to load, and then does without: what its log and command line say of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from specbench.dialects.llamacpp_events import command_facts, sentence_of
from specbench.records import Observation

DROPS: Final = ("vocab_mismatch", "drafter_is_not_eagle3", "speculation_failed")
"""Warnings after which llama.cpp serves on without speculation, the most telling first."""
TYPELESS: Final = (
    "a draft model is loaded, but without --spec-type it is never asked",
    "add --spec-type draft-simple",
)
UNTOLD: Final = (
    "speculation was asked for, and the log does not say why it is off",
    "look for warnings at the server's start",
)


class DrafterLog(Struct, frozen=True, kw_only=True):
    """One variant's drafter by its servers' logs."""

    loaded_line: str | None = None
    """The log's line that says so."""
    drops: Mapping[str, str] = {}
    """The log's line by the name of the warning."""
    typeless: bool = False
    """llama.cpp's command line names a drafter and does not say how to draft."""


class Reason(NamedTuple):
    """Why nothing was drafted."""

    message: str
    remedy: str
    line: str
    """Of the log; empty where it says nothing."""


def drafter_log(engine: str, argv: Sequence[str], observations: Iterable[Observation]) -> DrafterLog:
    """Of one launch."""
    told = [(one.name, one.value) for one in observations if one.source == "log" and isinstance(one.value, dict)]
    loads = [_text(value) for kind, value in told if kind == "phase" and value.get("name") == "drafter"]
    drops = {str(value.get("name")): _text(value) for kind, value in reversed(told) if kind == "warning"}
    facts = command_facts(argv) if engine == "llamacpp" else {}
    return DrafterLog(
        loaded_line=next(iter(loads), None),
        drops={name: drops[name] for name in DROPS if name in drops},
        typeless="drafter" in facts and "spec_type" not in facts,
    )


def _text(value: Mapping[str, Any]) -> str:
    return str(value.get("text", ""))


def explained(drops: Iterable[str], typeless: bool) -> tuple[str, str]:
    """Message and remedy. `drops` are the names of the log's warnings."""
    told = next((code for code in DROPS if code in set(drops)), None)
    if told is not None:
        return sentence_of(told)
    return TYPELESS if typeless else UNTOLD


def reason(log: DrafterLog) -> Reason | None:
    """None where neither the log nor the command line tells."""
    if not log.drops and not log.typeless:
        return None
    message, remedy = explained(log.drops, log.typeless)
    line = next((log.drops[code] for code in DROPS if code in log.drops), log.loaded_line or "")
    return Reason(message, remedy, line)
