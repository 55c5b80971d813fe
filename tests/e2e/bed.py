"""Runs the command line as a user does, with the fake engine on the path."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from specbench.store import StoredRun, read_run

FAKE: Final = Path(__file__).parent / "fake"
ROOT: Final = Path(__file__).parents[2]
LIMIT_S: Final = 150.0
SUITE: Final = """\
name: small
model: nowhere/model
engine: fake
server:
  startup_timeout_s: 20
  stop_grace_s: 2
warmup:
  request_count: 1
  max_output_tokens: 4
workloads:
  - name: chat
    concurrency: [2]
    request_count: 6
    max_output_tokens: 8
variants:
"""


class Bed:
    """A folder with the fake engine, and the command run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plugged = folder / "path" / "specbench" / "engines"
        plugged.mkdir(parents=True)
        shutil.copy(FAKE / "engine.py", plugged / "fake.py")
        shutil.copy(FAKE / "server.py", folder / "path" / "server.py")

    def suite(self, *variants: str, text: str = SUITE) -> Path:
        """A suite with these variants, each a YAML flow mapping without its braces."""
        path = self.folder / "small.yaml"
        path.write_text(text + "".join(f"  - {{{variant}}}\n" for variant in variants))
        return path

    def start(
        self, *words: str, env: Mapping[str, str] | None = None, limit_bytes: int = -1, stdin: str | None = None
    ) -> subprocess.Popen[str]:
        """`specbench run …` in the background; no file may grow beyond `limit_bytes`."""
        return self.start_plain(*words, "--out", str(self.folder / "results"), env=env, limit_bytes=limit_bytes, stdin=stdin)

    def start_plain(
        self, *words: str, env: Mapping[str, str] | None = None, limit_bytes: int = -1, stdin: str | None = None
    ) -> subprocess.Popen[str]:
        """With these words alone."""
        limits = (limit_bytes, limit_bytes)
        process = subprocess.Popen(
            [sys.executable, "-m", "specbench.cli.main", "run", *words],
            # An editable install is found after every folder on the path, so the checkout must be on it too.
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(self.folder / "path"), str(ROOT))), **(env or {})},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        if process.stdin is not None and stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
            process.stdin = None
        return process

    def run(
        self, *words: str, env: Mapping[str, str] | None = None, limit_bytes: int = -1
    ) -> subprocess.CompletedProcess[str]:
        """To its end."""
        return finish(self.start(*words, env=env, limit_bytes=limit_bytes))

    def plug(self, source: Path, name: str) -> None:
        """Puts a module on the path."""
        shutil.copy(source, self.folder / "path" / name)

    def stored(self) -> StoredRun:
        """The one run that was made."""
        (folder,) = (self.folder / "results").iterdir()
        return read_run(folder)

    def made_nothing(self) -> bool:
        """Whether no results were written."""
        return not (self.folder / "results").exists()


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Waits for the end; a process that does not end fails the test."""
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"still running after {LIMIT_S} s: {out}\n{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
