"""The real engine behind the real server, held against OpenVINO GenAI's own pipeline and its own counts.

What must agree, prompt by prompt, greedy: the text, the prompt's length, and the tokens of every step. The reference is
`LLMPipeline.generate`, which applies the chat template itself and keeps in `raw_metrics.m_batch_sizes` how many tokens
each step gave. Agreement is exact, so acceptance lengths are equal. OpenVINO's own sums need one rule:
`get_num_accepted_tokens` and `get_num_draft_tokens` leave out the step with which a request ends, so that step is left
out on our side too. Then accepted tokens are equal as well; proposed tokens are an upper bound, at most 3 % above
OpenVINO's: a drafter now and then stops short of K, which no step's output shows.
"""

import importlib.util
import os
import signal
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs

from specbench import clock, models
from specbench.models.smollm2 import weight_bytes
from specbench.suite import Speculation
from tests.e2e.openvino_bed import (
    CASES,
    ENGINE,
    GOOD,
    LOAD,
    PROMPTS,
    TARGET,
    WEAK,
    Answer,
    Case,
    Running,
    ask,
    case,
    facts,
    launch,
    reference,
    served,
)

EXTRA = all(importlib.util.find_spec(name) for name in ("openvino_genai", "gguf"))
MADE = all(models.is_made(path) for path in (TARGET, GOOD, WEAK))

pytestmark = [
    pytest.mark.openvino,
    pytest.mark.slow,
    pytest.mark.skipif(not EXTRA, reason="the extra `openvino` is not installed"),
    pytest.mark.skipif(
        not MADE, reason="the quickstart's models are not made; `specbench run suites/quickstart.yaml` makes them"
    ),
]


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.variant.name)
def test_acceptance_is_openvinos_own(one: Case, tmp_path: Path) -> None:
    with served(one, tmp_path / "server.log") as running:
        answers = [ask(running, prompt) for prompt in PROMPTS]
    for answer, own in zip(answers, reference(one), strict=True):
        assert answer.text == own["text"]
        assert answer.last.prompt_tokens == own["prompt_tokens"]
        check_steps(answer, own, one.variant.speculation)
    if one.lengths is not None:
        correct, verified = (sum(getattr(a.last, name) for a in answers) for name in ("correct_tokens", "verify_count"))
        assert one.lengths[0] < 1 + correct / verified < one.lengths[1]


def check_steps(answer: Answer, own: dict[str, Any], speculation: Speculation | None) -> None:
    """A step that ends in half a character may bring its tokens with the next chunk; the counts tell them all the same."""
    steps: list[int] = own["steps"]
    verify_steps = steps[1:]
    assert answer.last.output_tokens == sum(steps)
    assert sum(answer.steps) == sum(steps)
    if speculation is None:
        assert set(steps) == {1}
        assert not answer.last.verify_count
        return
    assert steps[0] == 1  # the prefill
    assert answer.last.verify_count == len(verify_steps)
    assert answer.last.correct_tokens == sum(verify_steps) - len(verify_steps)
    if own["accepted_tokens"] is not None:
        room_tokens = LOAD.max_output_tokens - sum(steps[:-1]) - 1
        proposed_last = min(speculation.proposed_tokens, room_tokens)
        assert answer.last.correct_tokens - (steps[-1] - 1) == own["accepted_tokens"]
        assert answer.last.proposed_tokens is not None
        over_count = answer.last.proposed_tokens - proposed_last - own["proposed_tokens"]
        assert 0 <= over_count <= 0.03 * own["proposed_tokens"]


def test_requests_join_the_next_step_and_leave_when_nobody_listens(tmp_path: Path) -> None:
    long = structs.replace(LOAD, max_output_tokens=400, ignore_eos=True)
    with served(CASES[0], tmp_path / "server.log") as running:
        alone = ask(running, PROMPTS[0])
        first = facts(running, PROMPTS[1], long)
        while not (one := next(first)).carries_tokens:
            pass
        with ThreadPoolExecutor() as pool:
            joined = pool.submit(ask, running, PROMPTS[0])
            seen_tokens = [one.output_tokens or 0]
            while not joined.done():
                seen_tokens.append(next(first).output_tokens or 0)
        assert joined.result().text == alone.text  # finished while the long one still ran, which lost nothing
        assert max(seen_tokens) < 400
        first.close()
        wait_idle(running)
        assert ask(running, PROMPTS[0]).text == alone.text


def wait_idle(running: Running) -> None:
    """The aborted request leaves the batch long before its 400 tokens: the worker stops computing."""
    worker = running.worker()
    until_s = clock.now_s() + 5
    while True:
        before_s = sum(worker.cpu_times()[:2])
        time.sleep(0.3)
        if sum(worker.cpu_times()[:2]) - before_s < 0.05:
            return
        assert clock.now_s() < until_s, "the worker still computes"


def test_server_answers_while_a_step_runs(tmp_path: Path) -> None:
    """The longest of 20 answers, against steps of 100 ms and more that would hold the interpreter's lock."""
    with served(CASES[1], tmp_path / "server.log") as running, ThreadPoolExecutor() as pool:
        busy = [pool.submit(ask, running, prompt, structs.replace(LOAD, max_output_tokens=120)) for prompt in PROMPTS]
        waits_s = []
        for _ in range(20):
            asked_s = clock.now_s()
            assert running.client.get("/v1/models").status_code == 200
            waits_s.append(clock.now_s() - asked_s)
            time.sleep(0.05)
        for one in busy:
            one.result()
    assert statistics.median(waits_s) < 0.05


def test_a_dead_worker_ends_the_server_with_its_cause(tmp_path: Path) -> None:
    with served(CASES[0], tmp_path / "server.log") as running:
        running.worker().kill()
        assert running.process.wait(timeout=20) == 1
        cause = ENGINE.death_cause(running.lines, 1)
    assert "ended by signal SIGKILL" in cause


def test_a_dead_worker_under_load_ends_the_server(tmp_path: Path) -> None:
    with served(CASES[0], tmp_path / "server.log") as running:
        stream = facts(running, PROMPTS[1], structs.replace(LOAD, max_output_tokens=400, ignore_eos=True))
        next(stream)
        running.worker().kill()
        with suppress(httpx.HTTPError):
            for _ in stream:
                pass
        assert running.process.wait(timeout=20) == 1
        assert "ended by signal SIGKILL" in ENGINE.death_cause(running.lines, 1)


def test_a_drafter_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    running = launch(case("broken", 4, str(tmp_path / "empty")), tmp_path / "server.log")
    running.client.close()
    assert running.process.wait(timeout=60) == 1
    assert f"{tmp_path}/empty/openvino_model.xml" in ENGINE.death_cause(running.lines, 1)


def test_the_worker_never_outlives_the_server(tmp_path: Path) -> None:
    with served(CASES[0], tmp_path / "server.log") as running:
        worker = running.worker()
        running.process.kill()
        worker.wait(timeout=20)


def test_sigterm_to_the_group_lets_the_running_request_end(tmp_path: Path) -> None:
    with served(CASES[0], tmp_path / "server.log") as running, ThreadPoolExecutor() as pool:
        worker = running.worker()
        stream = facts(running, PROMPTS[1], LOAD)
        next(stream)
        rest = pool.submit(list, stream)
        os.killpg(running.process.pid, signal.SIGTERM)
        assert max(one.output_tokens or 0 for one in rest.result()) == LOAD.max_output_tokens
        assert running.process.wait(timeout=20) == 0
        worker.wait(timeout=20)
        assert not any(line.kind == "fatal" for line in map(ENGINE.parse_log_line, running.lines))


def test_the_target_is_f16_and_the_drafters_are_not() -> None:
    for path, f16 in ((TARGET, True), (GOOD, False), (WEAK, False)):
        counted = weight_bytes(models.folder_of(path) / "openvino_model.xml")
        assert (counted["f16"] > 0.99 * sum(counted.values())) is f16
