"""One launch, from the lease of its ports to its manifest."""

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from specbench import clock, engines
from specbench.errors import LaunchError, StoreError
from specbench.execution import levels
from specbench.execution.bench import Bench, launched_by_us, served_url
from specbench.execution.client import open_client
from specbench.execution.control import Control
from specbench.execution.gauge import Gauge
from specbench.execution.gpu_use import wait_usable
from specbench.execution.guard import guarded
from specbench.execution.keeping import Keeper
from specbench.execution.launch_environment import read_launch
from specbench.execution.load import Level, Load, Target
from specbench.execution.observe import LogTail, log_tail, size_bytes
from specbench.execution.ranks import samplers, start_ranks
from specbench.execution.readiness import death, raise_if_died, wait_ready
from specbench.execution.saturation import Saturation
from specbench.execution.server import Runs, reached_at, uncancel
from specbench.execution.shards import Shards
from specbench.execution.slots import Place, ended_lease, give_back, lease
from specbench.execution.stall import Stall
from specbench.plan import Slot, Trial
from specbench.records import Failure, Lease, Observation, RequestRecord, TrialRecord
from specbench.store import TrialWriter
from specbench.suite import Workload
from specbench.suite.secrets import api_key_of
from specbench.units import Second, counted


class LaunchRun:
    """A trial in progress. What happens to it is in `record`, saved whenever it changes."""

    def __init__(self, bench: Bench, trial: Trial, writer: TrialWriter, hurry: asyncio.Event, place: Place) -> None:
        self._bench = bench
        self._trial = trial
        self._place = place
        self._lease = Lease(begun_utc=clock.utc_fine_text())
        self._writer = Keeper(writer, bench.secrets, levels.planned_count(bench))
        self._hurry = hurry
        self._variant = bench.suite.variant(trial.variant)
        self._engine = engines.get(self._variant.engine)
        self._zero_s = clock.now_s()
        self._gauge = Gauge(bench, trial, self._elapsed_s)
        self._tell = self._gauge.tell
        self._server: Runs | None = None
        self._tail: LogTail | None = None
        self._control: Control | None = None
        self._open = AsyncExitStack()
        """What is closed before the server goes, the last first."""
        self._shards: Shards | None = None
        self._saturation = Saturation()
        self._stall = Stall(self._variant.server.stall_timeout_s)
        self._api_key = api_key_of(self._variant, os.environ)
        self.record = TrialRecord(
            trial=trial,
            engine=self._variant.engine,
            engine_version=bench.version(self._variant),
            simulated=bench.rehearsal is not None,
            rehearsal=bench.rehearsal,
            started_utc=clock.utc_text(),
            lease=self._lease,
            slot=Slot(gpu_ids=place.gpu_ids, nodes=place.nodes),
        )

    async def run(self) -> TrialRecord:
        """Never raises for what befalls the server or the load; that is `record.failure`. Raises StoreError in the end when
        the folder could not be written: the disk is full."""
        self._writer.open()
        self._save()
        self._tell("launch", f"{self._engine.title} {self.record.engine_version or ''}".strip())
        try:
            self._obey_preflight()
            await self._measure()
        except LaunchError as error:
            self._fail(Failure(kind=error.kind, cause=error.cause, log_tail=error.log_tail, exit_code=self._exit_code))
        except asyncio.CancelledError:
            uncancel()
            self._fail(Failure(kind="interrupted", cause="stopped in the middle by the user or the system"))
        except StoreError as error:
            self._fail(Failure(kind="not_stored", cause=str(error)))
        finally:
            await self._end_undisturbed()
        interrupted = self.record.failure is not None and self.record.failure.kind == "interrupted"
        whole = not interrupted and self._writer.trouble is None
        self._save(ended_s=self._elapsed_s(), lease=ended_lease(self._lease, self._place), complete=whole)
        if self._writer.trouble is not None:
            raise self._writer.trouble
        return self.record

    # -- from nothing to ready ---------------------------------------------------------------------------

    def _obey_preflight(self) -> None:
        """Raises LaunchError `preflight` where a fault was found before the start, `no_slot` or `lacking` where it can't."""
        cause = (self._bench.refused or {}).get(self._variant.name)
        if cause is not None:
            raise LaunchError("preflight", cause)
        if self._bench.lacking is not None:
            raise LaunchError("lacking", self._bench.lacking)
        if self._place.refusal is not None:
            raise LaunchError("no_slot", self._place.refusal)

    async def _measure(self) -> None:
        if launched_by_us(self._bench, self._variant):
            async with self._place.gate or contextlib.nullcontext():
                await self._launch()
        else:
            await self._join()
        assert self._control is not None
        self._save(ready_s=self._elapsed_s(), phases=tuple(self._tail.phases) if self._tail else ())
        self._tell("ready", "ready")
        await self._guard(self._drive_all(self._control))
        await raise_if_died(self._server, self._tail, self._engine, self._writer.log_path, self._gauge.counts[1])

    async def _launch(self) -> None:
        slot = lease(self._variant, self._place, self._bench.ports, self._bench.leased_ports)
        command, self._gauge.gpu_ids = self._bench.command(self._variant, slot), slot.gpu_ids
        host = self._variant.server.host
        base_url = f"http://{reached_at(host)}:{slot.port}"
        self._save(argv=command.argv, env=command.env, slot=slot, base_url=base_url)
        await wait_usable(self._place)
        self._save(environment=await read_launch(self._bench, self._variant, slot))
        control = self._controlled(base_url)
        log_path = self._writer.new_log()
        self._server = await start_ranks(self._bench, self._variant, slot, command, log_path)
        self._save(process=self._server.process)
        tail = self._follow(log_path, 0)
        limit_s = self._variant.server.startup_timeout_s
        await wait_ready(
            self._server, tail, control, self._engine, log_path, limit_s, slot.port, lambda text: self._tell("phase", text)
        )

    async def _join(self) -> None:
        """A server of somebody else's: it is there already, and stays."""
        base_url = served_url(self._variant)
        self._save(base_url=base_url, environment=await read_launch(self._bench, self._variant, Slot()))
        control = self._controlled(base_url)
        if not await control.answers(timeout_s=10.0):
            raise LaunchError("not_reachable", f"nothing answers at {base_url}")
        if self._variant.server.log:
            path = Path(self._variant.server.log).expanduser()  # noqa: ASYNC240 (a look at one name)
            self._follow(path, size_bytes(path))

    def _controlled(self, base_url: str) -> Control:
        self._control = Control(base_url, self._engine.endpoints, api_key=self._api_key)
        self._open.push_async_callback(self._control.close)
        return self._control

    def _follow(self, path: Path, offset_bytes: int) -> LogTail:
        self._tail = LogTail(path, self._engine, self._add_observation, self._elapsed_s, offset_bytes)
        self._tail.begin()
        return self._tail

    # -- load ----------------------------------------------------------------------------------------------

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the load. Raises LaunchError `died_under_load` or `server_hung`."""
        end = await guarded(work, self._server.exited if self._server else None, self._stall)
        if end == "died" and self._server and self._tail:
            raise death("died_under_load", self._server, self._tail, self._engine, self._writer.log_path)
        if end == "hung":
            raise self._stall.error(log_tail(self._writer.log_path))

    async def _drive_all(self, control: Control) -> None:
        await self._ask_server_info(control, "ready")
        client = open_client(self.record.base_url, api_key=self._api_key)
        self._open.push_async_callback(client.aclose)
        served_model = await control.served_model() or self._bench.suite.model.path
        target = Target(
            engine=self._engine,
            client=client,
            served_model=served_model,
            version=self.record.engine_version,
            zero_s=self._zero_s,
        )
        begin = levels.begin_of(target, self._variant.engine, self.record.base_url, self._api_key)
        self._shards = Shards(begin, self._keep)
        load = Load(target, self._keep)
        self._stall.watch(load.pace.moved)
        self._stall.watch(self._shards.moved)
        self._open.push_async_callback(self._shards.close)
        for telemetry in samplers(self._place, partial(self._observe, "telemetry")):
            self._open.push_async_callback(telemetry.close)
            await telemetry.start()
        self._gauge.start()
        self._open.push_async_callback(self._gauge.close)
        await self._warm_up(load)
        for workload in self._bench.suite.workloads:
            for concurrency in workload.concurrency:
                if not self._saturation.is_over(workload):
                    await self._drive(load, control, workload, concurrency)
        await self._ask_server_info(control, "end")

    async def _warm_up(self, load: Load) -> None:
        level = levels.warmup_level(self._bench)
        self._gauge.begin(level)
        await load.drive(level)

    async def _drive(self, load: Load, control: Control, workload: Workload, concurrency: int) -> None:
        flushed = await control.flush()
        self._observe("client", "flush", {"ok": flushed})
        level = levels.level_of(self._bench, workload, concurrency)
        self._gauge.begin(level)
        self._tell("level", f"{level.title}: {counted(level.request_count, 'request')}")
        await levels.ask_metrics(control, level, partial(self._observe, "metrics", "begin"))
        started_s, processes = self._elapsed_s(), levels.level_processes_count(self._bench, level)
        try:
            if self._shards is None or (processes == 1 and not self._place.is_packed):
                await load.drive(level)
            else:
                load.next_index = await self._shards.drive(level, processes, load.next_index)
        finally:
            self._add_level(level, started_s, flushed, processes)
            self._gauge.tell_progress()
        await levels.ask_metrics(control, level, partial(self._observe, "metrics", "end"))
        levels.raise_if_short(level, self._gauge.counts, self._gauge.first_error, log_tail(self._writer.log_path))

    def _add_level(self, level: Level, started_s: Second, flushed: bool | None, processes: int) -> None:
        goodput_rps = self._saturation.end_level(level.workload)
        if self._saturation.is_over(level.workload):
            self._tell("note", f"{level.title}: goodput {goodput_rps:.2f} requests/s no longer grows, the sweep ends here")
        done = levels.level_record(level, started_s, self._elapsed_s(), flushed, processes)
        self._save(levels=(*self.record.levels, done))

    async def _ask_server_info(self, control: Control, name: str) -> None:
        if (info := await control.server_info()) is not None:
            self._observe("server_info", name, info)
        by_log = self._tail.resolved if self._tail else {}
        self._save(resolved=self.record.resolved | by_log | self._engine.resolved(info or {}))

    # -- what is kept and told -----------------------------------------------------------------------------

    def _keep(self, record: RequestRecord) -> None:
        self._writer.add_request(record)
        self._saturation.take(self._bench.suite.workload(record.workload), record)
        self._gauge.take(record)

    def _observe(self, source: Any, name: str, value: Any, now_s: Second | None = None) -> None:
        at_s = self._elapsed_s() if now_s is None else now_s - self._zero_s
        self._add_observation(Observation(at_s=at_s, source=source, name=name, value=value))

    def _add_observation(self, observation: Observation) -> None:
        self._gauge.see(observation)
        self._writer.add_observation(observation)

    def _save(self, **changes: Any) -> None:
        self.record = self._writer.write_manifest(structs.replace(self.record, **changes))

    def _fail(self, failure: Failure) -> None:
        self._writer.is_ending = True
        if self._writer.is_full and failure.kind != "interrupted":  # of which a server dies, too
            failure = structs.replace(failure, kind="disk_full", cause=str(self._writer.trouble))
        self._save(failure=failure)
        self._tell("failure", failure.cause)

    def _elapsed_s(self) -> Second:
        return clock.now_s() - self._zero_s

    @property
    def _exit_code(self) -> int | None:
        return self._server.exit_code if self._server else None

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
        self._writer.is_ending = True
        await self._open.aclose()
        if self._server:
            survivors = await self._server.stop(self._variant.server.stop_grace_s, self._hurry)
            if survivors:
                self._tell("note", f"processes {survivors} of the server could not be ended")
        give_back(self.record.slot, self._bench.leased_ports)
        if self._tail:
            await self._tail.end(restoring=self._server is not None)
            self._save(phases=tuple(self._tail.phases))
        self._writer.close()
        self._tell("launch_done", "ended")
