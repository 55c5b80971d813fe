"""Slurm's own commands, and nothing of ours: submit, ask, cancel. No accounting database is needed."""

import asyncio
import os
import pwd
import shutil
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from specbench.errors import SpecbenchError
from specbench.units import Second

COMMANDS: Final = ("sbatch", "squeue", "scancel", "scontrol", "srun")
LIMIT_S: Final = 120.0
"""For one of them: a busy controller takes its time."""
SEPARATOR: Final = "|"


SILENT: Final = ("Unable to contact slurm controller", "Socket timed out", "Connection refused")


class SilentError(SpecbenchError):
    """Slurm's controller does not answer; it may later."""


class Queued(NamedTuple):
    """A job that Slurm still has."""

    job_id: str
    state: str
    """`PENDING`, `RUNNING`, `COMPLETING`, …"""
    name: str
    reason: str
    """Why it waits; `None` when it runs."""


def lacking() -> str | None:
    """A sentence when this machine can't talk to a cluster."""
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    return f"launcher slurm needs Slurm's commands, and there is no {', '.join(missing)} here" if missing else None


async def submit(words: Sequence[str], script: str) -> str:
    """The job's id. Raises SpecbenchError in Slurm's words, SilentError where it has none."""
    out = await _told(("sbatch", "--parsable", *words), script)
    return out.strip().partition(";")[0]


async def queued(name_beginning: str) -> list[Queued]:
    """This user's jobs whose names begin so, in whatever state, until they are over. Raises SpecbenchError while Slurm does
    not answer."""
    user = pwd.getpwuid(os.getuid()).pw_name
    out = await _told(("squeue", "--noheader", f"--user={user}", f"--format=%i{SEPARATOR}%T{SEPARATOR}%r{SEPARATOR}%j"))
    rows = [line.strip().split(SEPARATOR, 3) for line in out.splitlines()]
    found = [Queued(row[0], row[1], row[3], row[2]) for row in rows if len(row) == 4]
    return [one for one in found if one.name.startswith(name_beginning)]


async def last_state(job_id: str) -> str:
    """Of a job that is over: `COMPLETED`, `TIMEOUT`, `CANCELLED`, `PREEMPTED`, …; `UNKNOWN` once Slurm has forgotten it."""
    try:
        return _field(await _told(("scontrol", "--oneliner", "show", "job", job_id)), "JobState") or "UNKNOWN"
    except SpecbenchError:
        return "UNKNOWN"


async def cancel(job_ids: Collection[str]) -> None:
    """Asks for the end of jobs; one that is over already is none. Raises SpecbenchError while Slurm does not answer."""
    if job_ids:
        await _told(("scancel", "--quiet", *job_ids))


async def nodes_of(node_list: str) -> tuple[str, ...]:
    """`n[1-2]` as names, in the order of their ranks."""
    return tuple((await _told(("scontrol", "show", "hostnames", node_list))).split())


async def address_of(node: str) -> str:
    """Where the others of the cluster reach a node."""
    return _field(await _told(("scontrol", "--oneliner", "show", "node", node)), "NodeAddr") or node


def _field(line: str, name: str) -> str | None:
    return next((word.partition("=")[2] for word in line.split() if word.startswith(f"{name}=")), None)


async def _told(words: Sequence[str], given: str | None = None, limit_s: Second = LIMIT_S) -> str:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE if given is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours to answer
    )
    try:
        async with asyncio.timeout(limit_s):
            out, err = await process.communicate(None if given is None else given.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
        raise SilentError(f"{words[0]} did not answer within {limit_s:g} s") from None
    if process.returncode:
        said = " ".join(err.decode(errors="replace").split()) or "without a word"
        kind = SilentError if any(word in said for word in SILENT) else SpecbenchError
        raise kind(f"{words[0]} refused: {said}")
    return out.decode(errors="replace")
