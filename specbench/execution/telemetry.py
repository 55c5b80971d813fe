"""GPUs while a load runs, once a second: a process of its own, so that a driver that hangs holds up nothing.

`python -m specbench.execution.telemetry 0 1` writes a JSON line a sample, and ends when its standard input does.
"""

import asyncio
import os
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from specbench import clock
from specbench.execution.gpu_use import is_below, occupant
from specbench.execution.nvml import SAMPLE, Nvml, nvml
from specbench.execution.unreadable import UnreadableError
from specbench.units import Second

EVERY_S: Final = 1.0
STOP_S: Final = 2.0
COMMAND: Final = (sys.executable, "-P", "-m", "specbench.execution.telemetry")
FAR: Final = "far"
"""After the GPUs: the harness is on another node."""
LINE_BYTES: Final = 1 << 22
Sink = Callable[[str, Any, Second], None]
"""Gets a name, its value, and `clock.now_s()` of each sample."""


class Telemetry:
    """The sampling process of one launch. `sink` gets `gpus` once a second; `ended` and why, if it ends unasked.

    `way`: words that run it on another node, `node`, whose clock is not ours: its samples are stamped when they arrive.
    """

    def __init__(self, gpu_ids: Sequence[int], sink: Sink, way: Sequence[str] = (), node: str | None = None) -> None:
        self._gpu_ids = gpu_ids
        self._sink = sink
        self._way = tuple(way)
        self._node = node
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._closing = False

    async def start(self) -> None:
        """Nothing to do without GPUs."""
        if not self._gpu_ids:
            return
        pipe = asyncio.subprocess.PIPE
        words = (*self._way, *COMMAND, *map(str, self._gpu_ids), *([FAR] if self._node is not None else []))
        self._process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=LINE_BYTES, start_new_session=True
        )
        self._reading = asyncio.create_task(self._read(self._process))

    async def close(self) -> None:
        """Ends it; one that does not end is killed."""
        self._closing = True
        process, self._process = self._process, None
        if process is None or self._reading is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_S)
        if process.returncode is None:
            process.kill()  # one that waits for a driver in the kernel does not even hear that
        await asyncio.wait({self._reading}, timeout=STOP_S)
        if self._reading.done():
            self._reading.exception()  # heard: whoever writes the records has told it already

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            told = msgspec.json.decode(line)
            at_s = told.pop("at_s")
            if self._node is not None:
                at_s, told["node"] = clock.now_s(), self._node
            self._sink(told.pop("name"), told, at_s)
        if not self._closing:
            code = await process.wait()
            self._sink("ended", {"reason": f"the sampling process ended with exit code {code}"}, clock.now_s())


def sample(library: Nvml, gpu_ids: Sequence[int], harness_pid: int | None) -> dict[str, Any]:
    """One line. `foreign`: processes on these GPUs that can be seen and do not descend from the harness; none where that is
    on another node."""
    gpus = [library.read(gpu_id, SAMPLE) for gpu_id in gpu_ids]
    foreign: list[dict[str, Any]] = []
    for gpu_id in gpu_ids:
        if harness_pid is None:
            break
        with suppress(UnreadableError):
            found = library.occupants(gpu_id)
            foreign += [occupant(*one) | {"gpu": gpu_id} for one in found if is_below(one[0], harness_pid) is False]
    return {"at_s": clock.now_s(), "name": "gpus", "gpus": gpus, "foreign": foreign}


def main(words: Sequence[str]) -> None:
    """The process."""
    gpu_ids, harness_pid = [int(word) for word in words if word != FAR], None if FAR in words else os.getppid()
    try:
        with nvml() as library:
            while True:
                _tell(sample(library, gpu_ids, harness_pid))
                ready, _, _ = select.select([sys.stdin], [], [], EVERY_S)
                if ready:
                    return
    except UnreadableError as error:
        _tell({"at_s": clock.now_s(), "name": "unreadable", "reason": str(error)})
        sys.stdin.read()  # until it is told to end: to have nothing to say is no death
    except BrokenPipeError:
        return


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
