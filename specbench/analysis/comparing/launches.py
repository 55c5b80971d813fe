"""A side: one variant's launches with their figures by level, and what forbids to use them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from specbench.analysis import checks
from specbench.analysis.cells import Cell, Key, Load, arm_of, decode_samples
from specbench.analysis.comparing import Refusal, SideFacts
from specbench.analysis.comparing.columns import Column, figures, read_columns
from specbench.analysis.metrics import logged_accept_length
from specbench.plan import Trial
from specbench.records import LevelRecord, RunRecord, TrialRecord
from specbench.store import OBSERVATIONS_FILE, REQUESTS_FILE, StoredRun, StoredTrial, lost_count
from specbench.streams import LeanRequest, OpenLaunch, OpenRun, each_launch
from specbench.suite import Slo, Suite, Variant, Workload
from specbench.units import counted

THROTTLED: Final = "gpu_throttled"
"""The check whose finding forbids to use a launch."""
LEAST, MOST = 1e-9, 1e12
"""Of seconds, of tokens and requests a second."""


class LaunchFigures(Struct, frozen=True, kw_only=True):
    """One launch, as a comparison sees it."""

    record: TrialRecord
    figures: dict[Key, dict[str, float | None]]
    """By level and metric; only levels that were recorded whole."""
    columns: dict[Key, Column]
    refusals: tuple[Refusal, ...]

    @property
    def block_index(self) -> int:
        """What pairs it with a launch of the other side."""
        return self.record.trial.block_index

    @property
    def identity(self) -> tuple[Any, ...]:
        """The same only for one and the same launch, in whatever folder it lies."""
        return self.record.trial, self.record.started_utc, self.times

    @property
    def times(self) -> tuple[Any, ...]:
        """No two launches end all their levels at the same moments. Empty without requests."""
        return tuple(
            (key, one.request_count, one.all_due_s, one.all_done_s) for key, one in self.columns.items() if one.request_count
        )


class Side(Struct, frozen=True, kw_only=True):
    """One variant of one result."""

    run: RunRecord
    simulated: bool
    suite: Suite
    variant: Variant
    facts: SideFacts
    launches: tuple[LaunchFigures, ...]
    lacking: tuple[Trial, ...] = ()
    """Planned launches of which nothing is stored."""

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What its own launches forbid."""
        return (*self._lacking(), *self._repeated(), *(one for launch in self.launches for one in launch.refusals))

    def _lacking(self) -> Iterator[Refusal]:
        """Those that are there are a choice that somebody, or the fault that ended the run, has made."""
        if self.lacking:
            names = ", ".join(one.folder for one in self.lacking)
            remedy = f"specbench run --resume {self.facts.folder}"
            yield Refusal(code="launch_missing", message=f"'{self.facts.folder}' lacks {names} of its plan: {remedy}")

    def _repeated(self) -> Iterator[Refusal]:
        """One launch stored under two numbers would count twice."""
        seen: dict[Any, str] = {}
        for launch in self.launches:
            name = launch.record.trial.folder
            other = seen.setdefault(launch.times, name) if launch.times else name
            if other != name:
                text = f"'{self.facts.folder}': {other} and {name} hold the same requests"
                yield Refusal(code="launches_shared", message=text)


def read_sides(asked: Sequence[tuple[OpenRun, Suite, Sequence[str]]]) -> list[dict[str, Side]]:
    """Of each result the sides of these variants, by name. Every launch is read once, all of them together."""
    chosen = [(one, suite) for result, suite, names in asked for name in names for one in result.of(name)]
    found = iter(each_launch([one for one, _ in chosen], [suite for _, suite in chosen], launch_figures))
    return [
        {name: _side(result, suite, name, [next(found) for _ in result.of(name)]) for name in names}
        for result, suite, names in asked
    ]


def _side(result: OpenRun, suite: Suite, name: str, launches: Sequence[LaunchFigures]) -> Side:
    variant = suite.variant(name)
    version = next((one.record.engine_version for one in launches if one.record.engine_version), None)
    facts = SideFacts(
        folder=result.folder,
        started_utc=result.run.started_utc,
        variant=name,
        launch_count=len(launches),
        engine=" ".join(filter(None, (variant.engine, version))),
    )
    return Side(
        run=result.run,
        simulated=result.simulated,
        suite=suite,
        variant=variant,
        facts=facts,
        launches=tuple(launches),
        lacking=result.lacks(name),
    )


def _levels(suite: Suite) -> dict[Key, Workload]:
    return {(one.name, concurrency): one for one in suite.workloads for concurrency in one.concurrency}


def launch_figures(launch: OpenLaunch, suite: Suite) -> LaunchFigures:
    """Reads the launch's requests, and its observations where the requests do not tell its acceptance."""
    levels = _levels(suite)
    slos: dict[Key, Slo | None] = {key: one.slo for key, one in levels.items()}
    columns = read_columns(_own_requests(launch), slos)
    driven = {key: [one for one in launch.record.levels if (one.workload, one.concurrency) == key] for key in levels}
    whole = [key for key in levels if _is_whole(columns[key], driven[key])]
    values = {key: figures(columns[key], _rate_rps(levels[key])) for key in whole}
    for key in whole:
        if values[key]["accept_length"] is None:
            values[key]["accept_length"] = _logged_length(launch, key, driven[key])
    refusals = _refusals(launch, columns, values, {key: one for key, one in levels.items() if key not in whole}, suite)
    return LaunchFigures(record=launch.record, figures=values, columns=columns, refusals=refusals)


def _own_requests(launch: OpenLaunch) -> Iterator[list[LeanRequest]]:
    """Raises StoreError for more lines than the launch wrote."""
    line_count = 0
    for block in launch.requests():
        line_count += len(block)
        yield block
    record = launch.record
    lost_count(Path(launch.folder) / REQUESTS_FILE, line_count, record.request_count, record.complete)


def _rate_rps(workload: Workload) -> float | None:
    return workload.arrival.rate_rps if workload.arrival else None


def _is_whole(column: Column, driven: Sequence[LevelRecord]) -> bool:
    return 0 < column.request_count >= sum(one.request_count for one in driven) > 0


def _logged_length(launch: OpenLaunch, key: Key, driven: Sequence[LevelRecord]) -> float | None:
    """The log's estimate."""
    observations = launch.observations()
    samples = decode_samples(observations, (driven[0].started_s, driven[-1].ended_s))
    cell = Cell(workload=key[0], concurrency=key[1], loads=(Load(requests=(), samples=samples),))
    return logged_accept_length(cell)


def _throttled(launch: OpenLaunch, suite: Suite) -> list[Refusal]:
    """What the check of a whole run says of this launch alone; a note of it is no obstacle. Lost lines may have said so."""
    telemetry, line_count = launch.telemetry()
    name = f"launch {launch.record.trial.launch_index} of '{launch.folder}'"
    path = Path(launch.folder) / OBSERVATIONS_FILE
    lost = lost_count(path, line_count, launch.record.observation_count, launch.record.complete)
    if lost:
        lines = "1 line" if lost == 1 else f"{lost} lines"
        return [Refusal(code="lines_lost", message=f"{name}: {lines} of its {OBSERVATIONS_FILE} were lost")]
    if not telemetry or THROTTLED not in checks.names():
        return []
    trial = StoredTrial(folder=launch.folder, record=launch.record, requests=(), observations=telemetry)
    run = RunRecord(suite_name="", suite_path="", suite={}, trials=(), started_utc="", specbench_version="")
    variant = suite.variant(launch.record.trial.variant)
    evidence = checks.Evidence(
        suite=suite,
        stored=StoredRun(folder=launch.folder, run=run, trials=(trial,)),
        arms={variant.name: arm_of(variant, (), {})},
        summaries=(),
        codes={},
        obstacles={},
    )
    found = [one for one in checks.get(THROTTLED)(evidence) if one.severity != "note"]
    return [Refusal(code=THROTTLED, message=f"{name}: GPUs were held back: {one.evidence}") for one in found]


def _take_impossible(values: Mapping[Key, dict[str, float | None]]) -> list[str]:
    """Figures that no server gives are taken out and told: the lines they come from were damaged, or made up."""
    told = []
    for (workload, concurrency), of_level in values.items():
        for metric, value in of_level.items():
            least = 1.0 if metric == "accept_length" else LEAST
            if value and not least <= value <= MOST:
                told.append(f"{workload} at {concurrency or 'its rate'}: {metric} can't be {value:.4g}")
                of_level[metric] = None
    return told


def _refusals(
    launch: OpenLaunch,
    columns: Mapping[Key, Column],
    values: Mapping[Key, dict[str, float | None]],
    missing: Mapping[Key, Workload],
    suite: Suite,
) -> tuple[Refusal, ...]:
    record, name = launch.record, f"launch {launch.record.trial.launch_index} of '{launch.folder}'"
    if record.failure is not None:
        return (Refusal(code="launch_failed", message=f"{name} failed: {record.failure.cause.rstrip('.')}"),)
    found = []
    failed_count = sum(one.failed_count for one in columns.values())
    of_count = sum(one.request_count for one in columns.values())
    if failed_count:
        found.append(
            Refusal(code="requests_failed", message=f"{name}: {failed_count} of {counted(of_count, 'request')} failed")
        )
    if impossible_count := sum(one.impossible_count for one in columns.values()):
        text = f"{name}: {impossible_count} of {counted(of_count, 'request')} hold times or counts that can't be"
        found.append(Refusal(code="impossible_records", message=text))
    found += _throttled(launch, suite)
    found += [Refusal(code="impossible", message=f"{name}: {one}") for one in _take_impossible(values)]
    if not record.complete:
        found.append(Refusal(code="launch_failed", message=f"{name} was cut off before its end"))
    for key, workload in missing.items():
        if workload.saturate is None:
            text = f"{name}: {key[0]} at {key[1] or 'its rate'} was not recorded whole"
            found.append(Refusal(code="level_missing", message=text))
    return tuple(found)
