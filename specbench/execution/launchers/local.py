"""Launches on the GPUs of this machine: one after another, or packed, each on GPUs of its own."""

import asyncio
from dataclasses import dataclass
from typing import Final

from specbench import clock
from specbench.execution.bench import Bench
from specbench.execution.gpu_use import RELEASE_S, strangers
from specbench.execution.gpus import gpu_troubles, machine_gpus
from specbench.execution.interrupt import Interrupt
from specbench.execution.scale import packed_width
from specbench.execution.slots import Place
from specbench.execution.trial import LaunchRun
from specbench.placement import Floor, GpuPlace, Start, gpus_of, next_start
from specbench.plan import REHEARSED_SERVERS, Trial
from specbench.records import Event, TrialRecord
from specbench.store import RunWriter
from specbench.units import Second, counted

LOADING_COUNT: Final = 2
"""Servers that load at the same time: each reads its weights and captures its graphs with many CPU cores."""
ATTEMPTS: Final = 3
"""Slots that a launch may try while GPUs under it die."""


@dataclass
class Running:
    """A launch that holds its slot."""

    trial: Trial
    place: Place


class Local:
    """Runs `waiting`; what comes of each is added to `done`. `nodes` and `address`: inside a job of a cluster."""

    def __init__(
        self,
        bench: Bench,
        writer: RunWriter,
        interrupt: Interrupt,
        waiting: list[Trial],
        done: list[TrialRecord],
        nodes: tuple[str, ...] = (),
        address: str = "",
    ) -> None:
        self._bench, self._writer, self._interrupt = bench, writer, interrupt
        self._waiting, self._done = waiting, done
        self._nodes, self._address = nodes, address
        self._gpus = machine_gpus(bench.suite, bench.rehearsal is not None)
        self._floor = Floor([GpuPlace(gpu.index, gpu.numa_node or 0) for gpu in self._gpus])
        self._is_packed = bench.suite.packing != "off" and not nodes
        self._width_count = self._width()
        self._gate = asyncio.Semaphore(LOADING_COUNT) if self._is_packed else None
        self._running: dict[asyncio.Task[TrialRecord], Running] = {}
        self._attempts: dict[Trial, int] = {}
        self._faults: list[BaseException] = []
        self._broken: dict[int, str] = {}
        self._released_s: dict[int, Second] = {}
        """By GPU: its memory may still be our own last server's for a while, which the next launch waits for."""

    async def run(self) -> None:
        """In the plan's order. An interrupt reaches every launch that runs, and each ends in its own way."""
        try:
            while not self._faults and self._begin_all():
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                self._take_ended()
        except asyncio.CancelledError:
            if not self._interrupt.asked:
                raise
        finally:
            self._waiting.clear()
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.wait(self._running)
                self._take_ended()
        if self._faults:
            raise self._faults[0]

    def _width(self) -> int:
        """Servers at once, told when it is fewer than the GPUs would allow."""
        bench = self._bench
        if not self._is_packed:
            return REHEARSED_SERVERS if bench.rehearsal is not None and not self._nodes else 1
        narrow = packed_width(bench.suite, bench.client_limit_rps, bench.rehearsal is not None)
        if narrow.sentence is not None and narrow.servers_count < len(self._gpus):
            self._tell(narrow.sentence)
        return narrow.servers_count

    def _begin_all(self) -> bool:
        """Begins what there is room for; False when nothing runs any more and nothing waits."""
        while self._waiting and not self._interrupt.asked:
            start = self._refused() or self._next()
            if start is None:
                break
            self._begin(start)
        return bool(self._running)

    def _next(self) -> Start | None:
        """GPUs that a stranger holds are left out as long as there are others; else the launch waits, and names him."""
        running = [one.trial for one in self._running.values()]
        fresh = {index for index, at_s in self._released_s.items() if clock.now_s() - at_s < RELEASE_S}
        free = [index for index in self._floor.usable if index not in self._floor.held | fresh]
        shunned = set() if self._are_simulated else strangers(free)
        rest = (self._bench.suite, self._waiting, self._floor, running, self._width_count)
        return next_start(*rest, shunned) or (next_start(*rest) if shunned and not running else None)

    def _refused(self) -> Start | None:
        """A launch that no slot is left for, since GPUs have died."""
        for trial in self._waiting:
            if not self._floor.is_empty and not self._floor.fits(gpus_of(self._bench.suite, trial)):
                return Start(trial, ())
        return None

    @property
    def _are_simulated(self) -> bool:
        return any(gpu.is_simulated for gpu in self._gpus)

    def _begin(self, start: Start) -> None:
        self._waiting.remove(start.trial)
        place = Place(
            gpu_ids=start.gpu_ids,
            are_simulated=self._are_simulated,
            nodes=self._nodes,
            address=self._address,
            gate=self._gate,
            is_packed=self._is_packed and self._bench.rehearsal is None,
            refusal=self._refusal(start),
        )
        for other in self._running.values():
            other.place.neighbours.add(start.trial.folder)
            place.neighbours.add(other.trial.folder)
        task = asyncio.create_task(self._launch(start.trial, place))
        self._running[task] = Running(start.trial, place)

    def _refusal(self, start: Start) -> str | None:
        needed = gpus_of(self._bench.suite, start.trial)
        if start.gpu_ids or self._floor.is_empty or not needed:
            return None
        broken = "; ".join(f"GPU {index}: {why}" for index, why in sorted(self._broken.items()))
        return f"it needs {counted(needed, 'GPU')}, and {len(self._floor.usable)} of this machine's are left ({broken})"

    async def _launch(self, trial: Trial, place: Place) -> TrialRecord:
        with self._writer.open_trial(trial) as trial_writer:
            return await LaunchRun(self._bench, trial, trial_writer, self._interrupt.hurry, place).run()

    def _take_ended(self) -> None:
        for task in [task for task in self._running if task.done()]:
            running = self._running.pop(task)
            self._floor.release(running.place.gpu_ids)
            self._released_s |= dict.fromkeys(running.place.gpu_ids, clock.now_s())
            fault = None if task.cancelled() else task.exception()
            if fault is not None:
                self._faults.append(fault)
            elif not task.cancelled() and not self._is_tried_elsewhere(running, task.result()):
                self._done.append(task.result())

    def _is_tried_elsewhere(self, running: Running, record: TrialRecord) -> bool:
        """After a failure GPUs that no longer work are left out, and the launch is begun again on others, if there are."""
        if record.failure is None or not running.place.gpu_ids or self._interrupt.asked:
            return False
        broken = gpu_troubles(running.place.gpu_ids)
        self._floor.poison(broken)
        self._broken |= broken
        attempt = self._attempts[running.trial] = self._attempts.get(running.trial, 0) + 1
        if not broken or attempt >= ATTEMPTS or not self._floor.fits(len(running.place.gpu_ids)):
            return False
        aside = self._writer.set_aside(running.trial)
        left = ", ".join(f"GPU {index} ({why})" for index, why in broken.items())
        self._tell(f"{running.trial.folder} is begun again on another slot, without {left}; the first try is in {aside}")
        self._waiting.insert(0, running.trial)
        return True

    def _tell(self, text: str) -> None:
        self._bench.on_event(Event(kind="note", text=text))
