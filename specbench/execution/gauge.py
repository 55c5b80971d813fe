"""How far a launch is and how fast it goes, for whoever watches; nothing of it is stored."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from specbench.execution.bench import Bench
from specbench.execution.levels import planned_count
from specbench.execution.load import Level
from specbench.plan import Trial
from specbench.records import Event, Observation, Progress, RequestRecord
from specbench.units import Second

EVERY_S: Final = 1.0
FRESH_S: Final = 5.0
"""How long the server's own word on its speed is the current one."""


class Gauge:
    """One launch's; tells of all events, and once a second under load how far it is. Counts are of the level that runs."""

    def __init__(self, bench: Bench, trial: Trial, elapsed: Callable[[], Second]) -> None:
        self._bench, self._trial, self._elapsed = bench, trial, elapsed
        self._launch_planned_count = planned_count(bench)
        self._launch_ended_count = 0
        self._ticking: asyncio.Task[None] | None = None
        self.gpu_ids: tuple[int, ...] = ()
        self._level: Level | None = None
        self._begun_s: Second = 0.0
        self.counts = (0, 0, 0)
        """Ended, failed and planned requests."""
        self.first_error: str | None = None
        self._output_tokens = self._verify_count = self._correct_tokens = 0
        self._decoded: tuple[Second, Mapping[str, Any]] = (-FRESH_S, {})
        self._gpus: Any = None

    def tell(self, kind: Any, text: str, progress: Progress | None = None) -> None:
        """An event of this launch."""
        text, at_s = self._bench.secrets.clean(text), self._elapsed()
        event = Event(kind=kind, trial=self._trial, text=text, at_s=at_s, gpu_ids=self.gpu_ids, progress=progress)
        self._bench.on_event(event)

    def tell_progress(self) -> None:
        """How far it is now."""
        self.tell("progress", self.text(), self.reading(self._elapsed()))

    def start(self) -> None:
        """Tells once a second, beside whatever else is done."""
        self._ticking = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """Tells no more by itself."""
        if self._ticking is not None:
            self._ticking.cancel()
            with suppress(asyncio.CancelledError):
                await self._ticking

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            self.tell_progress()

    def begin(self, level: Level) -> None:
        """A level begins: everything is counted anew."""
        self._level, self._begun_s = level, self._elapsed()
        self.counts, self.first_error = (0, 0, level.request_count), None
        self._output_tokens = self._verify_count = self._correct_tokens = 0

    def take(self, record: RequestRecord) -> None:
        """A request has ended."""
        ended, failed, planned = self.counts
        self.counts = (ended + 1, failed + (record.error is not None), planned)
        self.first_error = self.first_error or record.error
        self._launch_ended_count += 1
        self._output_tokens += record.output_tokens or 0
        if record.verify_count is not None and record.correct_tokens is not None:
            self._verify_count += record.verify_count
            self._correct_tokens += record.correct_tokens
        self.tell("request", self.text())

    def see(self, observation: Observation) -> None:
        """What the server or a GPU said of itself."""
        value = observation.value
        if observation.name == "decode" and isinstance(value, Mapping):
            self._decoded = (observation.at_s, value)
        elif observation.source == "telemetry" and observation.name == "gpus" and isinstance(value, Mapping):
            self._gpus = value.get("gpus")

    def text(self) -> str:
        """`chat c=8: 12/64, 1 failed`."""
        ended, failed, planned = self.counts
        level = self._level
        if level is None:
            return "no load yet"
        where = f"c={level.concurrency}" if level.concurrency else "open loop"
        what = "warm-up" if level.warmup else f"{level.workload.name} {where}"
        return f"{what}: {ended}/{planned}" + (f", {failed} failed" if failed else "")

    def reading(self, now_s: Second) -> Progress | None:
        """None before the first level. The speed is the server's own word where that is fresh, else the level's."""
        if self._level is None:
            return None
        ended, failed, planned = self.counts
        fresh = self._decoded[1] if now_s - self._decoded[0] < FRESH_S and self._decoded[0] >= self._begun_s else {}
        elapsed_s = now_s - self._begun_s
        so_far_tps = self._output_tokens / elapsed_s if self._output_tokens and elapsed_s > 0 else None
        counted = 1 + self._correct_tokens / self._verify_count if self._verify_count else None
        return Progress(
            workload=self._level.workload.name,
            concurrency=self._level.concurrency,
            warmup=self._level.warmup,
            ended_count=ended,
            failed_count=failed,
            planned_count=planned,
            launch_ended_count=self._launch_ended_count,
            launch_planned_count=self._launch_planned_count,
            output_tps=fresh.get("gen_throughput_tps") or so_far_tps,
            accept_length=counted or fresh.get("accept_length"),
            gpus=self._gpus,
        )
