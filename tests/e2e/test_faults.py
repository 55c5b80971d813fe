"""Every fault that a server can commit, a variant each: its cause, its record, and that the next variant ran."""

import http.server
import json
import threading
import time
from pathlib import Path
from typing import Final

import psutil
import pytest

from specbench.analysis.judge import judge_run
from specbench.plan import make_plan
from specbench.records import Event
from specbench.store import StoredRun, StoredTrial, read_run
from specbench.suite import load_suite
from specbench.suite.faults import FAULTS
from tests.e2e.bed import Bed

SUITE: Final = """\
name: small
model: nowhere/model
engine: sglang
server: {startup_timeout_s: 60, stop_grace_s: 0.5, stall_timeout_s: 2}
workloads:
  - name: chat
    dataset: random
    prompt_word_count: 20
    concurrency: [2]
    timeout_s: 30
    request_count: 6
    max_output_tokens: 16
rehearsal:
  base_step_s: 0.002
  prefill_s: 0.001
  faults: {FAULTS}
variants:
"""
WORDS: Final = {"slow_start": "slow_start:1", "reset": "reset:2", "http_500": "http_500:2", "garbage": "garbage:2"}
CAUSES: Final = {
    "crash_loading": ("died_while_loading", "the GPU ran out of memory while loading weights", 1),
    "crash_graph_capture": ("died_while_loading", "the GPU ran out of memory while capturing CUDA graphs", 1),
    "hang_loading": ("startup_timeout", "not ready after 3 s (startup_timeout_s), last phase: weights", None),
    "crash_first_request": ("died_under_load", "a GPU kernel touched memory that is not its own", 1),
    "crash_under_load": ("died_under_load", "a GPU kernel touched memory that is not its own", 1),
    "hang_under_load": (
        "server_hung",
        "the server hangs: requests are waiting, and for 2 s (stall_timeout_s) none of them got a chunk or ended",
        None,
    ),
    "http_429": ("no_answers", "HTTP 429: SIMULATED: too many requests; it asks to retry after 1 s", None),
}
"""Faults that end a launch: kind, part of the sentence, exit code."""
ERRORS: Final = {
    "reset": "Connection reset by peer",
    "http_500": "HTTP 500: SIMULATED: internal error",
    "garbage": "an event that can't be read",
}
"""Faults that end requests, half of them here."""
DISTURBANCES: Final = {"log_deleted": "deleted", "log_rotated": "replaced", "log_truncated": "emptied"}


def suite(bed: Bed, faults: dict[str, list[str]], *variants: str) -> Path:
    text = SUITE.replace("{FAULTS}", json.dumps(faults))
    return bed.suite(*(f"name: {one}" for one in variants), text=text)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """One run: the baseline, a variant a fault, and a healthy one behind them."""
    bed = Bed(tmp_path_factory.mktemp("faults"))
    names = [f"{name}, startup_timeout_s: 3" if name == "hang_loading" else name for name in FAULTS]
    path = suite(bed, {name: [WORDS.get(name, name)] for name in FAULTS}, "plain", *names, "last")
    done = bed.run(str(path), "--rehearse")
    assert done.returncode == 1, done.stderr
    for name, (_, cause, _) in CAUSES.items():
        assert any(line.startswith(f"specbench: failed: {name}: ") and cause in line for line in done.stderr.splitlines()), (
            name
        )
    assert "Traceback" not in done.stderr
    return bed.stored()


def trial_of(stored: StoredRun, name: str) -> StoredTrial:
    (trial,) = (one for one in stored.trials if one.record.trial.variant == name)
    return trial


def test_the_rest_of_the_suite_goes_on(stored: StoredRun) -> None:
    """Each fault's variant is followed by one that ran; the last one is whole."""
    assert stored.run.complete
    assert [one.record.trial.variant for one in stored.trials] == ["plain", *FAULTS, "last"]
    assert all(one.record.complete and one.dropped_count == 0 for one in stored.trials)
    for name in ("plain", "last"):
        assert trial_of(stored, name).record.failure is None
        assert [one.error for one in trial_of(stored, name).requests] == [None] * 5


@pytest.mark.parametrize("name", CAUSES)
def test_a_fault_that_ends_the_launch(stored: StoredRun, name: str) -> None:
    kind, cause, exit_code = CAUSES[name]
    trial = trial_of(stored, name)
    failure = trial.record.failure
    assert failure is not None
    assert (failure.kind, failure.exit_code) == (kind, exit_code)
    assert cause in failure.cause
    assert failure.log_tail
    assert trial.record.argv[-2:] == ("--fault", WORDS.get(name, name))
    loading = kind in ("died_while_loading", "startup_timeout")
    assert (trial.record.ready_s is None, not trial.requests) == (loading, loading)
    assert {"launch_failed"} <= {one.code for one in judge_run(stored).findings if one.variant == name}


def test_what_was_in_flight_when_it_hung_is_recorded(stored: StoredRun) -> None:
    errors = [one.error for one in trial_of(stored, "hang_under_load").requests]
    assert errors.count(None) >= 2
    assert errors.count("stopped before the answer ended") == 2


@pytest.mark.parametrize("name", ERRORS)
def test_a_fault_that_ends_requests(stored: StoredRun, name: str) -> None:
    trial = trial_of(stored, name)
    assert trial.record.failure is None
    failed = [one.error for one in trial.requests if one.error]
    assert len(failed) == 2
    assert all(ERRORS[name] in one for one in failed)
    finding = next(one for one in judge_run(stored).findings if one.variant == name and one.code == "failed_requests")
    assert ERRORS[name] in finding.evidence


@pytest.mark.parametrize("name", DISTURBANCES)
def test_a_disturbed_log(stored: StoredRun, name: str) -> None:
    trial = trial_of(stored, name)
    assert trial.record.failure is None
    assert all(one.error is None for one in trial.requests)
    seen = [one.value for one in trial.observations if one.name == "log_disturbed"]
    assert seen == [{"what": DISTURBANCES[name]}]
    assert {"log_disturbed"} <= {one.code for one in judge_run(stored).findings if one.variant == name}
    log = (Path(trial.folder) / "server.log").read_text()
    assert "SIGTERM received" in log
    assert ("SIMULATED: this server runs no model" in log) is (name == "log_deleted")


def test_a_slow_start_is_only_slow(stored: StoredRun) -> None:
    slow, plain = (trial_of(stored, name).record for name in ("slow_start", "plain"))
    assert slow.failure is None
    assert (slow.ready_s or 0) > 1
    assert plain.ready_s is not None


def test_a_server_that_never_stops_is_killed(stored: StoredRun) -> None:
    trial = trial_of(stored, "never_stops")
    assert trial.record.failure is None
    port = str(trial.record.slot.port)
    assert [one.pid for one in psutil.process_iter(["cmdline"]) if port in (one.info["cmdline"] or ())] == []


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers 200 whatever is asked, as a test bed does."""

    def do_GET(self) -> None:
        body = b'{"data": [{"id": "mine"}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Says nothing."""


def loading_port(bed: Bed, folder: str) -> int:
    """The port of a server that has begun to load and not yet bound it."""
    for _ in range(600):
        for manifest in (bed.folder / "results").glob(f"*/{folder}/manifest.json"):
            log = manifest.with_name("server.log")
            if log.is_file() and "Load weight begin" in log.read_text():
                return int(json.loads(manifest.read_text())["slot"]["port"])
        time.sleep(0.05)
    pytest.fail("no server was launched")


def test_a_stranger_on_the_port(bed: Bed) -> None:
    """It comes between the lease and the server's own binding, and answers as if it were the server."""
    process = bed.start(str(suite(bed, {"taken": ["slow_start:20"]}, "taken", "next")), "--rehearse")
    port = loading_port(bed, "taken.launch0")
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Stranger) as stranger:
        serving = threading.Thread(target=stranger.serve_forever)
        serving.start()
        _, err = process.communicate(timeout=60)
        stranger.shutdown()
        serving.join()
    assert process.returncode == 1, err
    taken, after = bed.stored().trials
    failure = taken.record.failure
    assert failure is not None
    assert failure.kind == "port_in_use"
    assert failure.cause.startswith(f"port {port} was taken by process ")
    assert failure.cause.endswith("which answers in the server's stead")
    assert taken.requests == ()
    assert after.record.failure is None
    assert len(after.requests) == 5


@pytest.fixture
def stepping(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The wall clock of the load client, ahead by what the test says."""
    from specbench.clock import wall_s
    from specbench.execution.transport import fast
    from specbench.execution.transport.arrivals import ClockBridge

    ahead = {"s": 0.0}
    monkeypatch.setattr(fast, "ClockBridge", lambda: ClockBridge(realtime_s=lambda: wall_s() + ahead["s"]))
    monkeypatch.setattr("specbench.execution.launchers.local.REHEARSED_SERVERS", 1)
    return ahead


def test_a_clock_that_is_set_during_the_load(bed: Bed, stepping: dict[str, float]) -> None:
    from specbench.execution.runner import run_plan

    path = suite(bed, {}, "plain", "stepped", "next")
    counts = {"plain": 0, "stepped": 0, "next": 0}

    def on_event(event: Event) -> None:
        if event.kind == "request" and event.trial is not None:
            counts[event.trial.variant] += 1
            if event.trial.variant == "stepped" and counts["stepped"] == 3:
                stepping["s"] += 3600.0

    plan = make_plan(load_suite(path, {}))
    outcome = run_plan(plan, path.read_text(), bed.folder / "results", on_event, rehearsal="a test")
    assert outcome.exit_code == 0
    stored = read_run(outcome.folder)
    stepped_counts = [sum(one.stepped for one in trial.requests) for trial in stored.trials]
    assert stepped_counts[0] == stepped_counts[2] == 0
    assert stepped_counts[1] >= 1
    assert all(one.record.complete and not one.record.failure for one in stored.trials)
    assert [one.variant for one in judge_run(stored).findings if one.code == "clock_stepped"] == ["stepped"]


MANY: Final = ("request_count: 6\n    max_output_tokens: 16", "request_count: 400\n    max_output_tokens: 512")


def test_a_full_disk_stops_the_run_in_good_order(bed: Bed) -> None:
    path = suite(bed, {}, "plain", "next")
    path.write_text(path.read_text().replace(*MANY).replace("concurrency: [2]", "concurrency: [16]"))
    done = bed.run(str(path), "--rehearse", "--full", "--quiet", limit_bytes=300 * 1024)
    assert done.returncode == 2, done.stderr
    assert "requests and needs about" in done.stderr
    assert "each further launch needs about" in done.stderr
    assert "what was written is kept" in done.stderr
    assert "Traceback" not in done.stderr
    stored = bed.stored()
    failures = [one.record.failure for one in stored.trials if one.record.failure]
    assert {one.kind for one in failures} <= {"disk_full", "interrupted"}
    full = next(one for one in stored.trials if one.record.failure and one.record.failure.kind == "disk_full")
    assert not full.record.complete
    assert not stored.run.complete
    assert len(full.requests) > 5
    assert [one.request_index for one in full.requests if one.error is None]
    assert not list(Path(stored.folder).glob("*/.reserve"))
    ports = {str(one.record.slot.port) for one in stored.trials}
    assert [one.pid for one in psutil.process_iter(["cmdline"]) if ports & set(one.info["cmdline"] or ())] == []


def test_a_disk_that_is_full_before_the_start(bed: Bed) -> None:
    done = bed.run(str(suite(bed, {}, "plain")), "--rehearse", "--quiet", limit_bytes=100 * 1024)
    assert done.returncode == 2, done.stderr
    assert "a launch needs at least 0.25 MiB" in done.stderr
    assert "Traceback" not in done.stderr
