"""Events as JSON, one object a line: for a program that watches a run."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from specbench import clock
from specbench.plan import Plan
from specbench.records import Event
from specbench.render.live import UNTOLD
from specbench.render.remaining import Remaining

EVENTS_SCHEMA_VERSION: Final = 1


class EventLines:
    """`write` gets a line at a time, without its break. The first tells of the run, the last (`done`) how it ended."""

    def __init__(self, write: Callable[[str], None], plan: Plan, rehearsal: str | None) -> None:
        self._write = write
        self._count = len(plan.trials)
        self._simulated = rehearsal is not None
        self._remaining = Remaining(plan, self._simulated)
        self._tell(
            "run",
            schema_version=EVENTS_SCHEMA_VERSION,
            suite_name=plan.suite.name,
            launch_count=self._count,
            rehearsal=rehearsal,
            left_s=self._remaining.left_s,
        )

    def __call__(self, event: Event) -> None:
        self._remaining.take(event)
        if event.kind in UNTOLD:
            return
        told: dict[str, Any] = {"text": event.text}
        if event.trial is not None:
            told |= {
                "launch": event.trial.folder,
                "variant": event.trial.variant,
                "launch_index": event.trial.launch_index,
                "order_index": event.trial.order_index,
                "at_s": event.at_s,
                "gpu_ids": event.gpu_ids,
            }
        if event.progress is not None:
            told["progress"] = event.progress
        self._tell(event.kind, **told, done_count=self._remaining.done_count, left_s=self._remaining.left_s)

    def done(self, folder: str, exit_code: int) -> None:
        """The last line."""
        self._tell("run_done", folder=folder, exit_code=exit_code)

    def _tell(self, kind: str, **told: Any) -> None:
        label = {"label": "SIMULATED"} if self._simulated else {}
        line = {"kind": kind, "time_utc": clock.utc_text(), **label, **told}
        self._write(msgspec.json.encode(line).decode())
