"""The engine `external`: a server that is already there, is used and is left as it was."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.bed import FAKE, SUITE, Bed

TEXT = SUITE.replace("engine: fake", "engine: external")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Port and log of a fake server that this test runs itself."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = tmp_path / "theirs.log"
    with log.open("w") as file:
        process = subprocess.Popen([sys.executable, str(FAKE / "server.py"), "--port", str(port)], stderr=file)
        try:
            yield port, log
        finally:
            process.kill()
            process.wait()


def wait_until_ready(log: Path) -> None:
    for _ in range(200):
        if "ready to roll" in log.read_text():
            return
        subprocess.run(["sleep", "0.05"], check=True)
    pytest.fail("the fake server did not start")


def test_a_served_url_is_used_and_left_alone(bed: Bed, served: tuple[int, Path]) -> None:
    port, log = served
    wait_until_ready(log)
    done = bed.run(str(bed.suite(f"name: theirs, url: 'http://127.0.0.1:{port}/v1', log: {log}", text=TEXT)))
    assert done.returncode == 0, done.stderr
    (trial,) = bed.stored().trials
    assert trial.record.base_url == f"http://127.0.0.1:{port}"
    assert trial.record.argv == ()
    assert trial.record.levels[0].flushed is None
    assert trial.record.resolved == {"max_running_requests": 7}
    assert sum(one.error is None for one in trial.requests) == 7
    with socket.create_connection(("127.0.0.1", port)):
        assert "Load weight" not in "".join(str(one.value) for one in trial.observations)


def test_what_is_lacking_is_told(bed: Bed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    done = bed.run(str(bed.suite(f"name: dead, url: '{url}'", "name: lost, url: 'ftp://x', log: none.log", text=TEXT)))
    assert done.returncode == 2
    assert f"variant 'dead': nothing answers at {url}" in done.stderr
    assert "must begin with http:// or https://" in done.stderr
    assert "the log file none.log does not exist" in done.stderr
    assert bed.made_nothing()


def test_it_cannot_be_rehearsed(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: theirs, url: 'http://127.0.0.1:9'", text=TEXT)), "--rehearse")
    assert done.returncode == 2
    assert "variant 'theirs' can't be rehearsed" in done.stderr
