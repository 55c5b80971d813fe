"""`specbench run` against an engine that is one file in a folder on the Python path."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from specbench.records import TrialRecord
from specbench.store import StoredTrial
from tests.e2e.bed import SUITE, Bed, finish


def group_of(record: TrialRecord) -> list[str]:
    """Command lines that still hold the launch's port."""
    words = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    port = f"--port\0{record.slot.port}\0".encode()
    return [word.decode() for word in words if port in word]


def _readable(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def only(trials: tuple[StoredTrial, ...]) -> StoredTrial:
    (trial,) = trials
    return trial


def test_a_new_engine_is_one_file(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain")))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the fake engine is prepared") == 1
    stored = bed.stored()
    trial = only(stored.trials)
    measured = [one for one in trial.requests if not one.warmup]
    assert stored.run.complete
    assert trial.record.complete
    assert trial.record.engine_version == "1.0"
    assert trial.record.resolved == {"max_running_requests": 7}
    assert [one.name for one in trial.record.phases] == ["weights"]
    assert len(measured) == 6
    assert len(trial.requests) == 7
    assert all(one.error is None and one.chunk_tokens == (2, 2, 2, 2) and one.output_tokens == 8 for one in measured)
    assert all(one.due_s <= one.sent_s < one.chunk_s[0] <= one.chunk_s[-1] <= one.done_s for one in measured)
    assert trial.record.levels[0].flushed is True
    assert group_of(trial.record) == []
    folder = Path(stored.folder)
    assert {"report.md", "report.json", "suite.yaml", "run.json"} <= {path.name for path in folder.iterdir()}
    assert str(folder.name) in done.stdout


def test_a_launch_that_dies_while_loading_is_recorded_and_the_next_goes_on(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain", "name: dead, args: [--die-loading]", "name: late")))
    assert done.returncode == 1, done.stderr
    plain, dead, late = bed.stored().trials
    failure = dead.record.failure
    assert failure is not None
    assert (failure.kind, failure.cause, failure.exit_code) == ("died_while_loading", "RuntimeError: Not enough memory", 3)
    assert len(failure.log_tail) == 20
    assert failure.log_tail[-2:] == ("RuntimeError: Not enough memory", "after the cause")
    assert plain.record.failure is late.record.failure is None
    assert "dead: RuntimeError: Not enough memory" in done.stderr


def test_a_server_that_is_never_ready_meets_the_limit(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain, args: [--start-s, 60], startup_timeout_s: 1.5")))
    assert done.returncode == 1
    record = only(bed.stored().trials).record
    assert record.failure is not None
    assert record.failure.kind == "startup_timeout"
    assert record.failure.cause == "not ready after 1.5 s (startup_timeout_s), last phase: weights"
    assert group_of(record) == []


def test_a_server_that_dies_under_load(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain, args: [--die-after, 4]")))
    assert done.returncode == 1
    trial = only(bed.stored().trials)
    assert trial.record.failure is not None
    assert (trial.record.failure.kind, trial.record.failure.cause) == ("died_under_load", "RuntimeError: lost under load")
    assert sum(one.error is None for one in trial.requests) >= 1
    assert any(one.error for one in trial.requests)


def test_a_server_that_dies_at_the_last_request(bed: Bed) -> None:
    text = SUITE.replace("concurrency: [2]", "concurrency: [1]")
    done = bed.run(str(bed.suite("name: plain, args: [--die-after, 7]", text=text)))
    assert done.returncode == 1
    trial = only(bed.stored().trials)
    assert trial.record.failure is not None
    assert (trial.record.failure.kind, trial.record.failure.exit_code) == ("died_under_load", 3)
    assert [one.error is None for one in trial.requests] == [True] * 6 + [False]


def test_a_server_that_refuses_every_request(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain, args: [--refuse]")))
    assert done.returncode == 1
    trial = only(bed.stored().trials)
    assert trial.record.failure is not None
    assert trial.record.failure.kind == "no_answers"
    assert {one.error for one in trial.requests} >= {"HTTP 503: no room"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_recorded(bed: Bed, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and a run then ignores it too")
    text = SUITE.replace("request_count: 6", "request_count: 400")
    process = bed.start(str(bed.suite("name: plain", "name: never", text=text)))
    wait_for_lines(bed, "plain.launch0", 8)
    process.send_signal(number)
    done = finish(process)
    assert done.returncode == 128 + number, done.stderr
    assert "Results by workload and streams" in done.stdout or "plain" in done.stdout
    assert f"go on with: specbench run --resume {bed.stored().folder}" in done.stderr
    stored = bed.stored()
    trial = only(stored.trials)
    assert not stored.run.complete
    assert not trial.record.complete
    assert trial.record.failure is not None
    assert trial.record.failure.kind == "interrupted"
    assert sum(one.error is None for one in trial.requests) >= 7
    assert group_of(trial.record) == []


def wait_for_lines(bed: Bed, folder: str, count: int) -> None:
    """Until so many requests are on disk."""
    for _ in range(400):
        found = list((bed.folder / "results").glob(f"*/{folder}/requests.jsonl"))
        if found and found[0].read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    pytest.fail("no requests were recorded")


def test_a_second_interrupt_waits_for_nobody(bed: Bed) -> None:
    text = SUITE.replace("request_count: 6", "request_count: 400").replace("stop_grace_s: 2", "stop_grace_s: 50")
    process = bed.start(str(bed.suite("name: plain, args: [--stubborn]", text=text)))
    wait_for_lines(bed, "plain.launch0", 4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began_s = time.monotonic()
    assert finish(process).returncode == 130
    assert time.monotonic() - began_s < 20
    assert children_left(bed) == []


def test_a_server_that_ignores_sigterm_is_killed_with_all_it_started(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain, args: [--stubborn], stop_grace_s: 0.5")))
    assert done.returncode == 0, done.stderr
    assert children_left(bed) == []
    assert group_of(only(bed.stored().trials).record) == []


def children_left(bed: Bed) -> list[int]:
    """Of the two that the stubborn server starts, one of them in a session of its own."""
    (log,) = (bed.folder / "results").glob("*/*/server.log")
    pids = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("child ")]
    assert len(pids) == 2
    left = [pid for pid in pids if runs(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def test_all_obstacles_are_told_before_anything_starts(bed: Bed) -> None:
    text = SUITE.replace("name: chat\n", "name: chat\n    dataset: jsonl\n    path: nowhere.jsonl\n")
    suite = bed.suite(
        "name: a, args: ['--lacks=x']", "name: b, args: ['--lacks=x']", "name: c, args: ['--lacks=y']", text=text
    )
    done = bed.run(str(suite))
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert sum("the fake engine lacks x" in line for line in lines) == 1
    assert sum("the fake engine lacks y" in line for line in lines) == 1
    assert sum("nowhere.jsonl" in line for line in lines) == 1
    assert "Traceback" not in done.stderr
    assert bed.made_nothing()


def test_too_few_gpus_is_one_sentence(bed: Bed) -> None:
    text = SUITE.replace("engine: fake\n", "engine: fake\nhardware: {gpu_count: 999}\n")
    done = bed.run(str(bed.suite("name: a", "name: b", text=text)))
    assert done.returncode == 2
    assert done.stderr.count("the suite needs 999 GPUs and this machine has") == 1
    assert bed.made_nothing()


def test_a_port_in_use_is_told_before_anything_starts(bed: Bed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = bed.run(str(bed.suite("name: plain")), "--ports", str(port))
    assert done.returncode == 2
    assert f"port {port} on 127.0.0.1 is in use by another process" in done.stderr
    assert bed.made_nothing()


def test_a_rehearsal_says_simulated_everywhere(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain")), "--rehearse")
    assert done.returncode == 0, done.stderr
    stored = bed.stored()
    trial = only(stored.trials)
    assert stored.run.simulated
    assert trial.record.simulated
    assert trial.record.rehearsal
    assert "SPECBENCH_SIMULATION" in trial.record.env
    assert all("SIMULATED" in line for line in done.stderr.splitlines() if "plain.launch0" in line)
    assert "SIMULATED" in done.stdout
    assert "SIMULATED" in (Path(stored.folder) / "report.md").read_text()


def test_only_the_named_variants_run(bed: Bed) -> None:
    done = bed.run(str(bed.suite("name: plain", "name: other", "name: third")), "--variant", "plain", "third", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert [trial.record.trial.variant for trial in bed.stored().trials] == ["plain", "third"]
    assert bed.run(str(bed.suite("name: plain")), "--variant", "plian").returncode == 2
