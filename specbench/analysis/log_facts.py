"""What the rules for a log look at, and what they give."""

from typing import Any

from msgspec import Struct

from specbench.analysis.log_sums import SwitchedOff


class LogFinding(Struct, frozen=True, kw_only=True):
    """A doubt or a fault, with what to do."""

    code: str
    severity: str
    message: str
    remedy: str = ""


class Facts(Struct, frozen=True, kw_only=True):
    """What the rules look at."""

    engine: str
    pooled_length: float | None
    longest_length: float
    """The longest acceptance length of any record."""
    switched_off: SwitchedOff | None = None
    record_count: int
    k: int | None
    last_useful_position: int | None
    settings: dict[str, Any]
    warning_lines: dict[str, int]
    request_count: int
    idle_tail_count: int = 0
    """Last decode lines of a stream in which requests run and no token comes out."""
    busy_after_last_count: int
    """Requests or intervals with output since the last record that drafted."""
    graph_ratio: float | None
    speculation_active: bool | None
    bucket_length: tuple[float, ...]
    died: bool
    restart_count: int = 0
    """Servers that started after the first record."""
    foreign_count: dict[str, int] = {}
    """Lines of other engines, by engine."""
    unread_count: int = 0
    """Lines that seem to hold figures and could not be read."""
    impossible_count: int = 0
    fault_count: int = 0
