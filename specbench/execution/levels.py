"""What a launch drives, level by level: which conversations, for whom, by how many client processes."""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from specbench.errors import LaunchError
from specbench.execution.bench import Bench
from specbench.execution.control import Control
from specbench.execution.load import Level, Target, take_requests
from specbench.execution.scale import offered_rps
from specbench.execution.scale import processes_count as count_of
from specbench.execution.schedule import schedule_s
from specbench.execution.shard import Begin
from specbench.records import LevelRecord
from specbench.suite import Workload
from specbench.units import Second, counted


def warmup_level(bench: Bench) -> Level:
    """The first workload's kind of request, one at a time. Prompts from the end: those measured first stay uncached."""
    warmup, workload = bench.suite.warmup, bench.suite.workloads[0]
    short = structs.replace(workload, max_output_tokens=warmup.max_output_tokens)
    prompts = bench.prompts[workload.name][::-1]
    taken = take_requests(prompts * (1 + warmup.request_count // len(prompts)), warmup.request_count)
    return Level(workload=short, concurrency=1, prompts=taken, warmup=True)


def level_of(bench: Bench, workload: Workload, concurrency: int) -> Level:
    """In an open loop a conversation a moment, with all its turns; in a closed one as many requests as asked for."""
    moments_s, planned = schedule_s(workload, bench.suite.seed), bench.prompts[workload.name]
    if moments_s:
        prompts = planned[: len(moments_s)]
    else:
        prompts = take_requests(planned, workload.level_request_count(concurrency), concurrency)
    return Level(workload=workload, concurrency=concurrency, prompts=prompts, schedule_s=moments_s)


def level_processes_count(bench: Bench, level: Level) -> int:
    """Client processes for a level; a rehearsal's three servers side by side have the cores that more would need."""
    if bench.rehearsal is not None:
        return 1
    chunks_rps = offered_rps(bench.suite, level.workload, level.concurrency)
    return count_of(chunks_rps, bench.client_limit_rps, level.concurrency or None)


def planned_count(bench: Bench) -> int:
    """Requests of one launch, warm-up included; of a sweep, all that it may come to."""
    levels = ((one, concurrency) for one in bench.suite.workloads for concurrency in one.concurrency)
    return bench.suite.warmup.request_count + sum(one.level_request_count(concurrency) for one, concurrency in levels)


def begin_of(target: Target, engine: str, base_url: str, api_key: str | None) -> Begin:
    """What a client process is told of the same server."""
    return Begin(
        engine=engine,
        base_url=base_url,
        served_model=target.served_model,
        version=target.version,
        zero_s=target.zero_s,
        api_key=api_key,
    )


def level_record(
    level: Level, started_s: Second, ended_s: Second, flushed: bool | None, processes_count: int
) -> LevelRecord:
    """As it is stored."""
    return LevelRecord(
        workload=level.workload.name,
        concurrency=level.concurrency,
        started_s=started_s,
        ended_s=ended_s,
        request_count=level.request_count,
        flushed=flushed,
        client_processes_count=processes_count,
    )


async def ask_metrics(control: Control, level: Level, keep: Callable[[Any], None]) -> None:
    """Keeps the server's counters, where it tells them."""
    counters = await control.metrics()
    if counters:
        keep({"workload": level.workload.name, "concurrency": level.concurrency, "counters": counters})


def raise_if_short(level: Level, counts: tuple[int, int, int], first_error: str | None, log_tail: tuple[str, ...]) -> None:
    """`counts`: ended, failed, planned. Raises LaunchError `no_answers` when more requests failed than not."""
    cause = shortfall_sentence(level, counts[0], counts[1], first_error)
    if cause is not None:
        raise LaunchError("no_answers", cause, log_tail)


def shortfall_sentence(level: Level, ended_count: int, failed_count: int, first_error: str | None) -> str | None:
    """When more requests failed than not: the server is gone, or refuses what is asked. None when all is well enough."""
    if ended_count and 2 * failed_count <= ended_count:
        return None
    count = (
        "no request"
        if failed_count == ended_count
        else f"only {ended_count - failed_count} of {counted(ended_count, 'request')}"
    )
    return f"{count} of {level.title} succeeded: {first_error}"
