"""One run, one SIGKILL at a seeded random instant, and everything that must hold afterwards, counted.

The processes of a run are found by a mark of this test's own in the suite's `env`, not by what specbench looks for.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from specbench.store import StoredRun, read_run
from tests.e2e.bed import FAKE, ROOT

Victim = Literal["harness", "server", "watcher", "everything"]
Kind = Literal["simulated", "daemons", "openvino"]
MODEL: Final = "specbench:smollm2-135m-f16"
MARK: Final = "KILLED_BY_TEST"
GONE_S: Final = 15.0
LIMIT_S: Final = 240.0
LENGTH_S: Final = {"simulated": 3.5, "daemons": 6.0, "openvino": 35.0}
"""About as long as an undisturbed run takes once it has begun; kills fall into it evenly."""
BEGUN_RATIO: Final = 0.9
"""Of the kills, those that come after the run's folder was made."""
TWICE_RATIO: Final = 0.3
"""Of the runs whose resuming is killed too."""
REQUESTS: Final = {"simulated": 9, "daemons": 9, "openvino": 5}
"""Of a whole launch, warm-up included."""
SUITE: Final = """\
name: killed
model: {model}
engine: {engine}
server: {{startup_timeout_s: 120, stop_grace_s: 0.5, env: {{{mark}: {value}}}}}
warmup: {{request_count: 1, max_output_tokens: 4}}
workloads:
  - {{name: chat, concurrency: {levels}, request_count: 4, max_output_tokens: 16}}
variants:
  - {{name: first{args}}}
  - {{name: second{args}}}
  - {{name: third{args}}}
  - {{name: fourth{args}}}
"""


class Figures(Struct, frozen=True, kw_only=True):
    """What one kill did. All but `gone_s`, `reported` and `redone` must be nought."""

    seed: int
    victim: Victim
    kind: Kind
    begun: bool
    """There was a `run.json` by then."""
    gone_s: float = 0.0
    left: int = 0
    """Processes after 15 s."""
    reported: int = 0
    lost: int = 0
    """Requests reported as finished that are not on disk."""
    twice: int = 0
    redone: int = 0
    """Launches that resuming did; whole ones must not be among them."""
    changed: int = 0
    """Whole launches whose files resuming touched."""
    different: int = 0
    """Launches that are not as an undisturbed run leaves them."""
    trouble: str = ""

    @property
    def faults(self) -> int:
        """0 when everything held."""
        return self.left + self.lost + self.twice + self.changed + self.different + bool(self.trouble)


class Killing:
    """A folder in which one run is killed."""

    def __init__(self, folder: Path, seed: int, victim: Victim, kind: Kind) -> None:
        self.folder, self.seed, self.victim, self.kind = folder, seed, victim, kind
        self.dice = random.Random(f"{seed}/{victim}/{kind}")
        self.value = uuid.uuid4().hex
        self.told = folder / "told"
        folder.mkdir(parents=True, exist_ok=True)
        self.suite = folder / "killed.yaml"
        model = MODEL if kind == "openvino" else "nowhere/model"
        engine = {"simulated": "sglang", "daemons": "fake", "openvino": "openvino"}[kind]
        args = ", args: [--daemon, --stubborn, --step-s, 0.05]" if kind == "daemons" else ""
        levels = "[1]" if kind == "openvino" else "[1, 2]"
        self.suite.write_text(
            SUITE.format(model=model, engine=engine, mark=MARK, value=self.value, args=args, levels=levels)
        )
        plugged = folder / "path" / "specbench" / "engines"
        plugged.mkdir(parents=True)
        shutil.copy(FAKE / "engine.py", plugged / "fake.py")
        shutil.copy(FAKE / "server.py", folder / "path" / "server.py")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """`specbench run …`, tapped."""
        tapped = Path(__file__).with_name("tapped.py")
        with (self.folder / "out").open("ab") as out:
            return subprocess.Popen(
                [sys.executable, str(tapped), str(self.told), "run", *words, "--no-check"],
                env={**os.environ, "PYTHONPATH": os.pathsep.join((str(self.folder / "path"), str(ROOT)))},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )

    def run(self) -> Figures:
        """Kills, waits, looks, resumes, looks again."""
        rehearse = () if self.kind == "openvino" else ("--rehearse",)
        process = self.start(str(self.suite), "--out", str(self.folder / "results"), *rehearse)
        try:
            self.kill(process)
            if self.victim in ("server", "watcher"):
                process.wait(LIMIT_S)
            began_s = time.monotonic()
            left = self.wait_gone() if self.victim != "everything" else []
            gone_s = time.monotonic() - began_s
            return self.look(gone_s, left)
        finally:
            for pid in (*self.processes(), *([process.pid] if process.poll() is None else [])):
                signalled(pid)
            process.wait()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """At a random instant of the run; a server or a watcher at one at which there is any."""
        if self.dice.random() < BEGUN_RATIO:
            self.wait_begun(process)
        time.sleep(self.dice.uniform(0.0, LENGTH_S[self.kind]))
        if self.victim == "harness":
            process.kill()
            process.wait()
            return
        while process.poll() is None:
            watchers = children(process.pid, "specbench.execution.watcher")
            servers = {pid for watcher in watchers for pid in children(watcher)}
            victims = {"server": servers, "watcher": watchers}.get(self.victim, watchers if servers else set())
            if victims and self.victim == "everything":
                for pid in (process.pid, *watchers, *servers):
                    signalled(pid)
                return
            if victims:
                signalled(self.dice.choice(sorted(victims)))
                return
            time.sleep(0.02)

    def wait_begun(self, process: subprocess.Popen[bytes]) -> None:
        """Until there is a `run.json`: on a busy machine that alone takes long."""
        while process.poll() is None and not list((self.folder / "results").glob("*/run.json")):
            time.sleep(0.02)

    def processes(self) -> list[int]:
        """Those that carry this run's mark."""
        word = f"{MARK}={self.value}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                dead = b") Z" in (path / "stat").read_bytes()
                if not dead and word in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def wait_gone(self) -> list[int]:
        """What is left after 15 s."""
        give_up_s = time.monotonic() + GONE_S
        while (left := self.processes()) and time.monotonic() < give_up_s:
            time.sleep(0.1)
        return left

    def look(self, gone_s: float, left: Collection[int]) -> Figures:
        """At what is on disk, before and after resuming."""
        folders = list((self.folder / "results").glob("*/run.json"))
        figures = Figures(
            seed=self.seed, victim=self.victim, kind=self.kind, begun=bool(folders), gone_s=gone_s, left=len(left)
        )
        if not folders:
            return figures
        folder = folders[0].parent
        before = read_run(folder)
        reported = Counter(self.told.read_text().split()) if self.told.exists() else Counter()
        stored = {Path(one.folder).name: len(one.requests) for one in before.trials}
        whole = whole_launches(before)
        if self.victim == "harness" and self.dice.random() < TWICE_RATIO:
            self.kill(self.start("--resume", str(folder)))
            left = [*left, *self.wait_gone()]
            whole |= whole_launches(read_run(folder))
        code = self.start("--resume", str(folder), "--redo-failed").wait(LIMIT_S)
        after = read_run(folder)
        late = len(self.wait_gone())
        return Figures(
            seed=self.seed,
            victim=self.victim,
            kind=self.kind,
            begun=True,
            gone_s=gone_s,
            left=len(left) + late,
            reported=reported.total(),
            lost=sum(max(0, count - stored.get(name, 0)) for name, count in reported.items()),
            twice=repeated(before) + repeated(after),
            redone=len(after.trials) - len(whole),
            changed=sum(contents(name) != content for name, content in whole.items()),
            different=differing(after, REQUESTS[self.kind]),
            trouble="" if code == 0 else f"resuming ended with {code}: {(self.folder / 'out').read_text()[-500:]}",
        )


def whole_launches(run: StoredRun) -> dict[str, dict[str, bytes]]:
    """Folders that no resuming may touch, and what is in them."""
    return {one.folder: contents(one.folder) for one in run.trials if one.record.complete and not one.record.failure}


def contents(folder: str) -> dict[str, bytes]:
    """Of every file of a launch."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def repeated(run: StoredRun) -> int:
    """Requests that stand twice in a launch."""
    return sum(len(one.requests) - len({request.request_index for request in one.requests}) for one in run.trials)


def differing(run: StoredRun, request_count: int) -> int:
    """Launches that are missing, not whole, failed, or have another number of good requests; and an unfinished run."""
    good = [
        one
        for one in run.trials
        if one.record.complete
        and one.record.failure is None
        and not (one.missing_count or one.dropped_count)
        and sum(request.error is None for request in one.requests) == len(one.requests) == request_count
    ]
    names = sorted(one.record.trial.folder for one in good)
    wanted = sorted(f"{name}.launch0" for name in ("first", "second", "third", "fourth"))
    return len(set(wanted) ^ set(names)) + (not run.run.complete)


def children(pid: int, word: str = "") -> set[int]:
    """Direct children whose command line holds a word."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and word in (path / "cmdline").read_text():
                found.add(int(path.name))
        except OSError:
            continue
    return found


def signalled(pid: int) -> None:
    """SIGKILL, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
