"""One launch, from the lease of its ports to its manifest."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from msgspec import structs

from specbench import clock, engines
from specbench.errors import LaunchError
from specbench.execution.bench import Bench, interpreter, served_url
from specbench.execution.client import open_client
from specbench.execution.control import Control
from specbench.execution.environment import without_secrets, words_without_secrets
from specbench.execution.levels import (
    begin_of,
    level_of,
    level_processes_count,
    level_record,
    shortfall_sentence,
    warmup_level,
)
from specbench.execution.load import Level, Load, Target
from specbench.execution.observe import LogTail, log_tail, size_bytes
from specbench.execution.readiness import death, raise_if_died, wait_ready
from specbench.execution.saturation import Saturation
from specbench.execution.server import Server, reached_at, start, uncancel
from specbench.execution.shards import Shards
from specbench.execution.slots import lease
from specbench.plan import Trial
from specbench.records import Event, Failure, Observation, RequestRecord, TrialRecord
from specbench.store import TrialWriter
from specbench.suite import Workload
from specbench.units import Second


class LaunchRun:
    """A trial in progress. What happens to it is in `record`, saved whenever it changes."""

    def __init__(self, bench: Bench, trial: Trial, writer: TrialWriter, hurry: asyncio.Event) -> None:
        self._bench = bench
        self._trial = trial
        self._writer = writer
        self._hurry = hurry
        self._variant = bench.suite.variant(trial.variant)
        self._engine = engines.get(self._variant.engine)
        self._zero_s = clock.now_s()
        self._server: Server | None = None
        self._tail: LogTail | None = None
        self._following: asyncio.Task[None] | None = None
        self._control: Control | None = None
        self._client: httpx.AsyncClient | None = None
        self._shards: Shards | None = None
        self._level_counts = (0, 0, 0)
        """Ended, failed and planned requests of the level that runs."""
        self._first_error: str | None = None
        self._saturation = Saturation()
        self.record = TrialRecord(
            trial=trial,
            engine=self._variant.engine,
            engine_version=bench.version(self._variant),
            simulated=bench.rehearsal is not None,
            rehearsal=bench.rehearsal,
            started_utc=clock.utc_text(),
            environment={"python": interpreter(self._variant), "load_average_1min": os.getloadavg()[0]},
        )

    async def run(self) -> TrialRecord:
        """Never raises for what befalls the server or the load; that is `record.failure`."""
        self._save()
        self._tell("launch", f"{self._engine.title} {self.record.engine_version or ''}".strip())
        try:
            self._obey_preflight()
            await self._measure()
        except LaunchError as error:
            self._fail(Failure(kind=error.kind, cause=error.cause, log_tail=error.log_tail, exit_code=self._exit_code()))
        except asyncio.CancelledError:
            uncancel()
            self._fail(Failure(kind="interrupted", cause="stopped in the middle by the user or the system"))
        finally:
            await self._end_undisturbed()
        self._save(ended_s=self._elapsed_s(), complete=not self.interrupted)
        return self.record

    @property
    def interrupted(self) -> bool:
        """The run is to end here."""
        return self.record.failure is not None and self.record.failure.kind == "interrupted"

    # -- from nothing to ready ---------------------------------------------------------------------------

    def _obey_preflight(self) -> None:
        """Raises LaunchError `preflight` where a fault was found before the start."""
        cause = (self._bench.refused or {}).get(self._variant.name)
        if cause is not None:
            raise LaunchError("preflight", cause)

    async def _measure(self) -> None:
        await (self._launch() if self._process_is_ours else self._join())
        assert self._control is not None
        self._save(ready_s=self._elapsed_s(), phases=tuple(self._tail.phases) if self._tail else ())
        self._tell("ready", "ready")
        await self._guard(self._drive_all(self._control))
        await raise_if_died(self._server, self._tail, self._engine, self._writer.log_path, self._level_counts[1])

    @property
    def _process_is_ours(self) -> bool:
        return self._engine.launches or self._bench.rehearsal is not None

    async def _launch(self) -> None:
        slot = lease(self._bench.suite, self._variant, self._bench.ports, self._bench.leased_ports)
        command = self._bench.command(self._variant, slot)
        host = self._variant.server.host
        base_url = f"http://{reached_at(host)}:{slot.port}"
        self._save(argv=words_without_secrets(command.argv), env=without_secrets(command.env), slot=slot, base_url=base_url)
        self._control = Control(base_url, self._engine.endpoints)
        log_path = self._writer.log_path
        self._server = await start(command, log_path, host, slot.port)
        self._save(process=self._server.process)
        tail = self._follow(log_path, 0)
        limit_s = self._variant.server.startup_timeout_s
        await wait_ready(
            self._server, tail, self._control, self._engine, log_path, limit_s, lambda text: self._tell("phase", text)
        )

    async def _join(self) -> None:
        """A server of somebody else's: it is there already, and stays."""
        base_url = served_url(self._variant)
        self._save(base_url=base_url)
        self._control = Control(base_url, self._engine.endpoints)
        if not await self._control.answers(timeout_s=10.0):
            raise LaunchError("not_reachable", f"nothing answers at {base_url}")
        if self._variant.server.log:
            path = Path(self._variant.server.log).expanduser()  # noqa: ASYNC240 (a look at one name)
            self._follow(path, size_bytes(path))

    def _follow(self, path: Path, offset_bytes: int) -> LogTail:
        self._tail = LogTail(path, self._engine, self._writer.add_observation, self._elapsed_s, offset_bytes)
        self._following = asyncio.create_task(self._tail.follow())
        return self._tail

    # -- load ----------------------------------------------------------------------------------------------

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the load until it ends or the server dies. Raises LaunchError `died_under_load`."""
        load = asyncio.create_task(work)
        dying = {self._server.exited} if self._server else set()
        try:
            await asyncio.wait({load, *dying}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            died = self._server is not None and self._server.exited.done()
            if not load.done():
                load.cancel()
                await asyncio.wait({load})
            load.cancelled() or load.exception()  # heard here: what counts is raised below, or is already on its way
        if died and self._server and self._tail:
            raise death("died_under_load", self._server, self._tail, self._engine, self._writer.log_path)
        load.result()

    async def _drive_all(self, control: Control) -> None:
        await self._ask_server_info(control, "ready")
        self._client = open_client(self.record.base_url)
        served_model = await control.served_model() or self._bench.suite.model.path
        target = Target(
            engine=self._engine,
            client=self._client,
            served_model=served_model,
            version=self.record.engine_version,
            zero_s=self._zero_s,
        )
        self._shards = Shards(begin_of(target, self._variant.engine, self.record.base_url), self._keep)
        load = Load(target, self._keep)
        await self._warm_up(load)
        for workload in self._bench.suite.workloads:
            for concurrency in workload.concurrency:
                if not self._saturation.is_over(workload):
                    await self._drive(load, control, workload, concurrency)
        await self._ask_server_info(control, "end")

    async def _warm_up(self, load: Load) -> None:
        level = warmup_level(self._bench)
        self._level_counts = (0, 0, level.request_count)
        await load.drive(level)

    async def _drive(self, load: Load, control: Control, workload: Workload, concurrency: int) -> None:
        flushed = await control.flush()
        self._observe("client", "flush", {"ok": flushed})
        level = level_of(self._bench, workload, concurrency)
        self._level_counts, self._first_error = (0, 0, level.request_count), None
        self._tell("level", f"{level.title}: {level.request_count} requests")
        await self._ask_metrics(control, level, "begin")
        started_s, processes = self._elapsed_s(), level_processes_count(self._bench, level)
        try:
            if processes == 1 or self._shards is None:
                await load.drive(level)
            else:
                load.next_index = await self._shards.drive(level, processes, load.next_index)
        finally:
            self._add_level(level, started_s, flushed, processes)
        await self._ask_metrics(control, level, "end")
        self._check_answers(level)

    async def _ask_metrics(self, control: Control, level: Level, when: str) -> None:
        counters = await control.metrics()
        if counters:
            place = {"workload": level.workload.name, "concurrency": level.concurrency}
            self._observe("metrics", when, place | {"counters": counters})

    def _check_answers(self, level: Level) -> None:
        """Raises LaunchError when more requests failed than not."""
        ended, failed, _ = self._level_counts
        cause = shortfall_sentence(level, ended, failed, self._first_error)
        if cause is not None:
            raise LaunchError("no_answers", cause, self._log_tail())

    def _add_level(self, level: Level, started_s: Second, flushed: bool | None, processes: int) -> None:
        goodput_rps = self._saturation.end_level(level.workload)
        if self._saturation.is_over(level.workload):
            self._tell("note", f"{level.title}: goodput {goodput_rps:.2f} requests/s no longer grows, the sweep ends here")
        done = level_record(level, started_s, self._elapsed_s(), flushed, processes)
        self._save(levels=(*self.record.levels, done))

    async def _ask_server_info(self, control: Control, name: str) -> None:
        info = await control.server_info()
        if info is not None:
            self._observe("server_info", name, info)
            self._save(resolved=self._engine.resolved(info))

    # -- what is kept and told -----------------------------------------------------------------------------

    def _keep(self, record: RequestRecord) -> None:
        self._writer.add_request(record)
        self._saturation.take(self._bench.suite.workload(record.workload), record)
        ended, failed, planned = self._level_counts
        self._level_counts = (ended + 1, failed + (record.error is not None), planned)
        self._first_error = self._first_error or record.error
        load = f"c={record.concurrency}" if record.concurrency else "open loop"
        what = "warm-up" if record.warmup else f"{record.workload} {load}"
        trouble = f", {self._level_counts[1]} failed" if self._level_counts[1] else ""
        self._tell("request", f"{what}: {ended + 1}/{planned}{trouble}")

    def _observe(self, source: Any, name: str, value: Any) -> None:
        self._writer.add_observation(Observation(at_s=self._elapsed_s(), source=source, name=name, value=value))

    def _save(self, **changes: Any) -> None:
        self.record = structs.replace(self.record, **changes)
        self._writer.write_manifest(self.record)

    def _fail(self, failure: Failure) -> None:
        self._save(failure=failure)
        self._tell("failure", failure.cause)

    def _tell(self, kind: Any, text: str) -> None:
        self._bench.on_event(Event(kind=kind, trial=self._trial, text=text, at_s=self._elapsed_s()))

    def _elapsed_s(self) -> Second:
        return clock.now_s() - self._zero_s

    def _exit_code(self) -> int | None:
        return self._server.exit_code if self._server else None

    def _log_tail(self) -> tuple[str, ...]:
        return log_tail(self._writer.log_path)

    # -- the end -------------------------------------------------------------------------------------------

    async def _end_undisturbed(self) -> None:
        """An interrupt that comes now must not leave a server behind."""
        ending = asyncio.create_task(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            uncancel()
            await ending

    async def _end(self) -> None:
        """Load is over; the server goes, then the rest of its log is read."""
        if self._shards:
            await self._shards.close()
        if self._client:
            await self._client.aclose()
        if self._control:
            await self._control.close()
        if self._server:
            survivors = await self._server.stop(self._variant.server.stop_grace_s, self._hurry)
            if survivors:
                self._tell("note", f"processes {survivors} of the server could not be ended")
        self._bench.leased_ports -= {self.record.slot.port, self.record.slot.nccl_port}
        if self._following and self._tail:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
            self._tail.finish()
            self._save(phases=tuple(self._tail.phases))
        self._tell("launch_done", "ended")
