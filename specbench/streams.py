"""A stored run read in passing: however many requests a launch holds, a block of them is in memory at a time.

`store.read_run` keeps every chunk's time, which a million requests turn into many gigabytes. Here a request is decoded
only as far as a comparison needs it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Struct

from specbench import store
from specbench.errors import StoreError
from specbench.plan import Trial
from specbench.records import Observation, RunRecord, TrialRecord
from specbench.units import Second

TELEMETRY = b'"telemetry"'
BLOCK_BYTES = 256 * 1024
"""Small enough to stay in the processor's cache while it is worked on."""
SHARED_BYTES = 256 * 1024 * 1024
"""From here on several processes read faster than they take to start."""

Count = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""Of tokens or steps; no answer has more than that. One below 0 is told by `timing.is_impossible`."""

Extra = TypeVar("Extra")
Result = TypeVar("Result")


class LeanRequest(Struct, gc=False, kw_only=True):
    """What of a `RequestRecord` a comparison needs; the same names; the answer's text stays undecoded.

    In the order in which they are stored, for that is decoded fastest.
    """

    prompt_id: str
    workload: str
    concurrency: int
    warmup: bool = False
    turn_index: int = 0
    due_s: Second
    done_s: Second
    stepped: bool = False
    chunk_s: tuple[Second, ...] = ()
    chunk_tokens: tuple[int, ...] = ()
    output_tokens: Count | None = None
    verify_count: Count | None = None
    correct_tokens: Count | None = None
    proposed_tokens: Count | None = None
    accept_histogram: tuple[int, ...] = ()
    error: str | None = None


class OpenLaunch(Struct, frozen=True, kw_only=True):
    """One launch whose lines are still on the disk."""

    folder: str
    record: TrialRecord

    def requests(self) -> Iterator[list[LeanRequest]]:
        """Blocks of lines, from the first; a cut-off last line is left out. Raises StoreError."""
        return stream_lines(Path(self.folder) / store.REQUESTS_FILE)

    def observations(self) -> tuple[Observation, ...]:
        """All of them, in memory. Raises StoreError."""
        return store.read_lines(Path(self.folder) / store.OBSERVATIONS_FILE, Observation)[0]

    def telemetry(self) -> tuple[tuple[Observation, ...], int]:
        """Observations of the GPUs only, the others passed over undecoded, and the number of all. Raises StoreError."""
        path = Path(self.folder) / store.OBSERVATIONS_FILE
        line_count, lines = 0, []
        try:
            with path.open("rb") as file:
                for line in file:
                    line_count += line.endswith(b"\n")
                    if TELEMETRY in line and line.endswith(b"\n"):
                        lines.append(line)
        except FileNotFoundError:
            return (), 0
        except OSError as error:
            raise StoreError(f"{path}: can't be read: {error.strerror}") from None
        try:
            found = [msgspec.json.decode(line, type=Observation) for line in lines]
        except (msgspec.DecodeError, RecursionError) as error:
            raise StoreError(f"{path}: a line of telemetry can't be read: {error}") from None
        return tuple(one for one in found if one.source == "telemetry"), line_count

    @property
    def size_bytes(self) -> int:
        """Of its requests' file; 0 when there is none."""
        path = Path(self.folder) / store.REQUESTS_FILE
        return path.stat().st_size if path.is_file() else 0


class OpenRun(Struct, frozen=True, kw_only=True):
    """A run with its launches that were begun, in the plan's order."""

    folder: str
    run: RunRecord
    launches: tuple[OpenLaunch, ...]

    @property
    def simulated(self) -> bool:
        """Whether any of its figures come from a cost model."""
        return self.run.simulated or any(one.record.simulated for one in self.launches)

    def of(self, variant: str) -> tuple[OpenLaunch, ...]:
        """One variant's launches."""
        return tuple(one for one in self.launches if one.record.trial.variant == variant and not one.record.trial.alone)

    def lacks(self, variant: str) -> tuple[Trial, ...]:
        """One variant's launches that were planned and of which nothing is stored."""
        there = {one.record.trial for one in self.launches}
        return tuple(one for one in self.run.trials if one.variant == variant and not one.alone and one not in there)


def open_result(folder: Path | str) -> OpenRun:
    """Reads `run.json` and the manifests. Raises StoreError in one sentence."""
    folder = Path(folder)
    run = store.read_plan(folder)
    begun = store.begun(folder, run)
    launches = tuple(OpenLaunch(folder=str(place), record=store.read_launch(place, trial)) for place, trial in begun)
    return OpenRun(folder=str(folder), run=run, launches=launches)


def each_launch(
    launches: Sequence[OpenLaunch], extras: Sequence[Extra], work: Callable[[OpenLaunch, Extra], Result]
) -> list[Result]:
    """`work` of every launch with its extra, in order. Big ones are dealt to processes, so all must be picklable."""
    processes_count = min(len(launches), len(os.sched_getaffinity(0)))
    if processes_count < 2 or sum(one.size_bytes for one in launches) < SHARED_BYTES:
        return list(map(work, launches, extras))
    with ProcessPoolExecutor(processes_count, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, launches, extras))


def stream_lines(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[list[LeanRequest]]:
    """Requests, a block at a time. Raises StoreError with file:line."""
    decoder = msgspec.json.Decoder(LeanRequest)
    buffer, held_bytes = bytearray(block_bytes), 0
    try:
        with path.open("rb", buffering=0) as file:
            while read_bytes := file.readinto(memoryview(buffer)[held_bytes:]):
                held_bytes += read_bytes
                end = buffer.rfind(b"\n", 0, held_bytes) + 1
                if end:
                    try:
                        yield decoder.decode_lines(memoryview(buffer)[:end])
                    except (msgspec.DecodeError, RecursionError) as fault:
                        raise _named(fault, path) from None
                buffer[: held_bytes - end] = buffer[end:held_bytes]  # a line that goes on in the next block
                held_bytes -= end
                if held_bytes == len(buffer):
                    buffer.extend(bytes(len(buffer)))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: can't be read: {error.strerror}") from None


def _named(fault: Exception, path: Path) -> StoreError:
    """The first line at fault, looked for only now: counting lines would take a tenth of the time of reading."""
    decoder = msgspec.json.Decoder(LeanRequest)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode_lines(line)  # which, as above, passes over an empty one
            except (msgspec.DecodeError, RecursionError) as error:
                return StoreError(f"{path}:{number}: can't be read as a RequestRecord: {error}")
    return StoreError(f"{path}: can't be read as RequestRecords: {fault}")
