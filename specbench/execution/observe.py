"""Reads a server's log while it grows, and turns its lines into observations."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from specbench.dialects import LogLine
from specbench.engines import Engine, TellsInItsLog
from specbench.errors import StoreError
from specbench.execution.logfile import Disturbance, LogFile
from specbench.records import Observation, Phase
from specbench.units import Second

POLL_S = 0.05
PIECE_BYTES = 256 * 1024
LONGEST_LINE_BYTES = 1024 * 1024
LOG_TAIL_LINES = 20
CAUSE_BYTES = 4 * 1024 * 1024
"""How much of a log's end a cause of death is looked for in."""
EXAMPLE_COUNT = 5
LINE_END = re.compile(rb"[\r\n]+")
"""A progress bar returns the carriage; each of its states is a line."""
CARRIED = {"prefill": "cached_tokens"}
"""Kinds that are stored only when they carry this number."""


class LogTail:
    """Follows one log. `sink` gets every observation; `elapsed` is the time since the trial began."""

    def __init__(
        self,
        path: Path,
        engine: Engine,
        sink: Callable[[Observation], None],
        elapsed: Callable[[], Second],
        offset_bytes: int = 0,
    ) -> None:
        self._file = LogFile(path, offset_bytes, self._disturbed)
        self._engine = engine
        self._sink = sink
        self._elapsed = elapsed
        self._rest = b""
        self._following: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()
        self.phases: list[Phase] = []
        self.resolved: dict[str, Any] = {}
        """Arguments that the server resolved, as far as its log says."""
        self.kind_counts: Counter[str] = Counter()
        self.unrecognised: list[str] = []
        """The first few lines that the engine's grammar doesn't know."""

    def begin(self) -> None:
        """Follows beside whatever else is done."""
        self._following = asyncio.create_task(self.follow())

    async def end(self, restoring: bool) -> None:
        """Follows no more, reads the rest; `restoring` writes a deleted log of ours back."""
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError, StoreError):
                await self._following
        if restoring:
            self.restore()
        self.finish()

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            if not self.read_piece():
                await asyncio.sleep(POLL_S)
            else:
                await asyncio.sleep(0)

    def read_piece(self) -> bool:
        """Reads what is there, a bounded piece; False when there was nothing new."""
        piece = self._file.read(PIECE_BYTES)
        if not piece:
            return False
        *lines, self._rest = LINE_END.split(self._rest + piece)
        if len(self._rest) > LONGEST_LINE_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._take(line)
        return True

    def drain(self) -> None:
        """All that is there by now."""
        while self.read_piece():
            pass

    def finish(self) -> None:
        """Once, at the end: a last line without an end is read as it stands; then what was not understood is told."""
        self.drain()
        self._file.close()
        rest, self._rest = self._rest, b""
        self._take(rest)
        if self.unrecognised:
            self._observe(
                "unrecognised", {"count": self.kind_counts["unrecognised"], "examples": self.unrecognised}, self._elapsed()
            )

    def restore(self) -> None:
        """Writes the log back to where it was if it was deleted; for a server of ours."""
        self.drain()
        self._file.restore()

    def _disturbed(self, what: Disturbance) -> None:
        self._observe("log_disturbed", {"what": what}, self._elapsed())

    def _take(self, raw: bytes) -> None:
        if not raw:
            return
        text = raw.decode(errors="replace")
        first = self._engine.parse_log_line(text)
        for line in (first, *first.also):
            self._take_line(line, text)

    def _take_line(self, line: LogLine, text: str) -> None:
        self.kind_counts[line.kind] += 1
        at_s = self._elapsed()
        if line.kind == "unrecognised" and len(self.unrecognised) < EXAMPLE_COUNT:
            self.unrecognised.append(text[:500])
        if line.kind == "phase":
            self._enter(line.name, at_s)
        if isinstance(self._engine, TellsInItsLog):
            self.resolved.update(self._engine.resolved_by_line(line))
        if self._engine.ready_line(line):
            self.ready.set()
        value = observed(line)
        if value is not None:
            self._observe(line.kind, value, at_s)

    def _enter(self, name: str, at_s: Second) -> None:
        if not self.phases or self.phases[-1].name != name:
            self.phases.append(Phase(name=name, at_s=at_s))

    def _observe(self, name: str, value: Any, at_s: Second) -> None:
        self._sink(Observation(at_s=at_s, source="log", name=name, value=value))


def observed(line: LogLine) -> Any:
    """What of a line is stored; None for noise and for lines that are only counted."""
    if line.kind == "decode":
        return msgspec.to_builtins(line.sample)
    if line.kind in ("noise", "partial", "unrecognised"):
        return None
    needed = CARRIED.get(line.kind)
    if (needed and needed not in line.value) or (line.kind == "known" and not line.value):
        return None
    rank = {"rank": line.rank} if line.rank else {}
    return {**msgspec.to_builtins(line.value), **rank, "name": line.name, "ts": line.ts, "text": line.text}


def last_lines(path: Path, length_bytes: int = CAUSE_BYTES) -> list[str]:
    """The lines in the last bytes of a log, oldest first; empty when there is none."""
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, 2)
            file.seek(max(0, size_bytes - length_bytes))
            raw = file.read()
    except OSError:
        return []
    return [part.decode(errors="replace") for part in LINE_END.split(raw) if part]


def size_bytes(path: Path) -> int:
    """0 when there is no such file yet."""
    return path.stat().st_size if path.exists() else 0


def log_tail(path: Path) -> tuple[str, ...]:
    """The last 20 lines, oldest first."""
    return tuple(last_lines(path, 256 * 1024)[-LOG_TAIL_LINES:])
