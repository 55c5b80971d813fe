"""The server's front over real HTTP: SGLang's endpoints, on a live process with the simulated engine behind them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specbench.dialects.sglang_http import ChatReader, GenerateReader
from specbench.dialects.sglang_log import parse_line

DRAFTER = "drafters/some-eagle3"
SPECULATION = (
    *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", DRAFTER),
    *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
)
COSTS = {"load_s": 0.0, "base_step_s": 0.005, "prefill_s": 0.002, "draft_step_s": 0.0005}
SLOW = {"base_step_s": 0.1}
START_LIMIT_S = 20.0
END_LIMIT_S = 10.0
GENERATE = {"text": "Write a Python function that adds two numbers.", "sampling_params": {"max_new_tokens": 24}}
CHAT = {"model": "any", "messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 24}


class Live:
    """A server process and a client to it."""

    def __init__(self, folder: Path, flags: tuple[str, ...], costs: dict[str, Any]) -> None:
        self.log_path, self.access_path = folder / "stderr", folder / "stdout"
        told = {"rehearsal": COSTS | costs, "drafters": {DRAFTER: {"name": "some", "method": "eagle3"}}, "seed": 3}
        argv = [sys.executable, "-m", "specbench.embedded.simulated", "--model-path", "kimi", "--port", "0", *flags]
        with self.log_path.open("w") as log, self.access_path.open("w") as access:
            env = os.environ | {"SPECBENCH_SIMULATION": json.dumps(told)}
            self.process = subprocess.Popen(argv, stdout=access, stderr=log, env=env, start_new_session=True)
        self.until(lambda: "ready to roll" in self.log, START_LIMIT_S)
        found = re.search(r"Uvicorn running on (http://\S+)", self.log)
        assert found is not None, self.log
        self.client = httpx.Client(base_url=found.group(1), timeout=30, trust_env=False)

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def until(self, done: Callable[[], bool], limit_s: float = END_LIMIT_S) -> None:
        end_s = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end_s, self.log
            time.sleep(0.01)

    def events(self, path: str, body: dict[str, Any]) -> list[bytes]:
        """The payloads of a streamed answer, `[DONE]` proved and taken off."""
        answer = self.client.post(path, json=body | {"stream": True})
        assert answer.status_code == 200, answer.text
        *events, done = [event.removeprefix(b"data: ") for event in answer.content.split(b"\n\n") if event]
        assert done == b"[DONE]"
        return events

    def running(self) -> float:
        text = self.client.get("/metrics").text
        found = re.search(r"^sglang:num_running_reqs\{.*\} ([\d.]+)$", text, re.M)
        assert found is not None, text
        return float(found.group(1))

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.client.get("/server_info").json()["internal_states"][0]
        return state

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_LIMIT_S)


Start = Callable[..., Live]


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    lives: list[Live] = []

    def start(*flags: str, **costs: Any) -> Live:
        lives.append(Live(tmp_path_factory.mktemp("server"), flags, costs))
        return lives[-1]

    yield start
    for live in lives:
        live.close()


@pytest.fixture(scope="module")
def speculating(starting: Start) -> Live:
    return starting(*SPECULATION, "--enable-metrics", "--decode-log-interval", "4")


@pytest.fixture(scope="module")
def slow(starting: Start) -> Live:
    return starting("--enable-metrics", "--max-running-requests", "1", **SLOW)


def test_generate_streams_cumulative_counts(speculating: Live) -> None:
    reader = GenerateReader()
    chunks = [reader.read(event) for event in speculating.events("/generate", GENERATE)]
    counts = [chunk.output_tokens or 0 for chunk in chunks]
    assert counts == sorted(set(counts))
    assert (counts[0], counts[-1]) == (1, 24)
    last = chunks[-1]
    assert last.verify_count == len(chunks) - 1
    assert last.correct_tokens is not None
    assert last.finish_reason == "length"
    assert last.proposed_tokens == 3 * (last.verify_count or 0)
    assert sum(index * count for index, count in enumerate(last.accept_histogram)) == last.correct_tokens
    assert 0 <= last.correct_tokens + (last.verify_count or 0) + 1 - 24 <= 3  # cut by the limit, at most the last step


def test_a_whole_answer_equals_the_streamed_one(speculating: Live) -> None:
    streamed = json.loads(speculating.events("/generate", GENERATE)[-1])
    whole = speculating.client.post("/generate", json=GENERATE).json()
    assert whole["text"] == streamed["text"]
    for key in ("completion_tokens", "spec_verify_ct", "spec_num_correct_drafts", "finish_reason"):
        assert whole["meta_info"][key] == streamed["meta_info"][key]


def test_chat_streams_in_sglangs_order(speculating: Live) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = speculating.events(
        "/v1/chat/completions", CHAT | {"stream_options": options, "return_spec_tokens_details": True}
    )
    parsed = [json.loads(event) for event in events]
    assert parsed[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert parsed[-3]["choices"][0]["finish_reason"] == "length"
    assert (parsed[-2]["choices"], parsed[-1]["choices"]) == ([], [])
    assert parsed[-1]["usage"]["completion_tokens"] == 24
    reader = ChatReader()
    chunks = [reader.read(event) for event in events]
    assert [chunk.carries_tokens for chunk in chunks] == [False, *[True] * (len(chunks) - 4), False, False, False]
    assert chunks[-2].verify_count == len(chunks) - 5
    counts = [chunk.output_tokens for chunk in chunks[1:-3]]
    assert (counts[0], counts[-1]) == (1, 24)


def test_chat_says_no_more_than_was_asked(speculating: Live) -> None:
    parsed = [json.loads(event) for event in speculating.events("/v1/chat/completions", CHAT)]
    assert all("usage" not in event and "sglext" not in event and event["choices"] for event in parsed)
    whole = speculating.client.post("/v1/chat/completions", json=CHAT).json()
    assert whole["object"] == "chat.completion"
    assert whole["usage"]["completion_tokens"] == 24
    assert whole["choices"][0]["message"]["content"] == "".join(
        event["choices"][0]["delta"].get("content", "") for event in parsed
    )


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        ("/generate", "{", "no JSON"),
        ("/generate", "[]", "must be a JSON object"),
        ("/generate", "{}", "'text' must be a string"),
        ("/generate", '{"text": "a", "sampling_params": {"max_new_tokens": 0}}', "at least 1, got 0"),
        ("/v1/chat/completions", '{"messages": []}', "'messages' must be a list"),
        ("/v1/chat/completions", '{"messages": [{"role": "user"}]}', "'content' must be text"),
        ("/v1/chat/completions", '{"messages": [{"role": "user", "content": "a"}], "max_tokens": 900000}', "900000"),
    ],
)
def test_a_bad_body_is_a_sentence(speculating: Live, path: str, body: str, part: str) -> None:
    answer = speculating.client.post(path, content=body)
    assert answer.status_code == 400
    told = answer.json()
    assert part in (told["message"] if path.startswith("/v1") else told["error"]["message"])


def test_everything_says_simulated(speculating: Live) -> None:
    for path in ("/v1/models", "/server_info", "/metrics", "/health", "/nowhere"):
        assert speculating.client.get(path).headers["x-specbench-simulated"] == "SIMULATED"
    assert speculating.client.post("/generate", content="{").headers["x-specbench-simulated"] == "SIMULATED"
    assert speculating.client.get("/server_info").json()["simulated"] == "SIMULATED"
    assert speculating.client.get("/metrics").text.startswith("# SIMULATED\n")
    assert "SIMULATED" in speculating.log.splitlines()[0]


def test_what_the_server_says_of_itself(speculating: Live) -> None:
    assert speculating.client.get("/v1/models").json()["data"][0]["id"] == "kimi"
    assert speculating.client.get("/model_info").json()["model_path"] == "kimi"
    assert speculating.client.get("/health").status_code == 200
    info = speculating.client.get("/server_info").json()
    resolved = {key: info[f"speculative_{key}"] for key in ("algorithm", "num_steps", "eagle_topk", "num_draft_tokens")}
    assert resolved == {"algorithm": "EAGLE3", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}
    assert info["max_running_requests"] == 48
    assert info["disable_cuda_graph"] is False
    assert speculating.client.get("/get_server_info").json().keys() == info.keys()
    assert "Endpoint '/get_server_info' is deprecated" in speculating.log


def test_the_average_moves_only_with_decode_lines(speculating: Live) -> None:
    assert speculating.client.post("/flush_cache").status_code == 200
    assert "avg_spec_accept_length" not in speculating.state()
    speculating.client.post("/generate", json=GENERATE | {"sampling_params": {"max_new_tokens": 3}})
    assert "avg_spec_accept_length" not in speculating.state()  # at most two verify steps, and a line is due every four
    lines_count = speculating.log.count("Decode batch")
    speculating.client.post("/generate", json=GENERATE)
    assert speculating.log.count("Decode batch") > lines_count
    samples = [line.sample for text in speculating.log.splitlines() if (line := parse_line(text)).kind == "decode"]
    last = samples[-1]
    assert last is not None
    assert last.accept_length is not None
    metrics = speculating.client.get("/metrics").text
    found = re.search(r"^sglang:spec_accept_length\{.*\} ([\d.]+)$", metrics, re.M)
    assert found is not None
    assert float(found.group(1)) == pytest.approx(last.accept_length, abs=0.005)
    assert 1 <= speculating.state()["avg_spec_accept_length"] <= 4


def test_every_log_line_is_understood(speculating: Live) -> None:
    speculating.client.post("/generate", json=GENERATE)
    lines = [parse_line(text) for text in speculating.log.splitlines()]
    assert {line.kind for line in lines} >= {"phase", "ready", "prefill", "decode", "warning", "known"}
    assert [line.text for line in lines if line.kind in ("unrecognised", "partial", "fatal")] == []
    assert '"POST /generate HTTP/1.1" 200' in speculating.access_path.read_text()


def test_metrics_must_be_asked_for(starting: Start) -> None:
    live = starting("--api-key", "secret")
    assert live.client.get("/metrics").status_code == 404
    assert live.client.post("/generate", json=GENERATE).status_code == 401
    allowed = {"authorization": "Bearer secret"}
    assert live.client.post("/generate", json=GENERATE, headers=allowed).status_code == 200
    assert "secret" not in live.log + live.client.get("/server_info", headers=allowed).text


def test_old_versions_have_old_endpoints_and_keys(starting: Start) -> None:
    live = starting(*SPECULATION, version="0.5.3")
    assert live.client.get("/server_info").status_code == 404
    assert live.client.get("/get_server_info").json()["version"] == "0.5.3"
    assert "deprecated" not in live.log
    events = [json.loads(event)["meta_info"] for event in live.events("/generate", GENERATE)]
    spec_keys = [{key for key in info if key.startswith("spec_")} for info in events]
    assert spec_keys == [*[set()] * (len(events) - 1), {"spec_verify_ct"}]


def test_who_goes_away_is_aborted(slow: Live) -> None:
    long = GENERATE | {"sampling_params": {"max_new_tokens": 5000}, "stream": True}
    with slow.client.stream("POST", "/generate", json=long) as answer:
        blocks = answer.iter_bytes()  # kept: the stream ends with its iterator
        next(blocks)
        assert slow.running() == 1
        refused = slow.client.post("/flush_cache")
        assert refused.status_code == 400
    slow.until(lambda: slow.running() == 0)
    assert "Cache not flushed because there are pending requests. #queue-req: 0, #running-req: 1" in slow.log
    assert slow.client.post("/flush_cache").status_code == 200
    assert "Cache flushed successfully!" in slow.log


def test_sigterm_drains(starting: Start) -> None:
    live = starting("--enable-metrics", base_step_s=0.03)
    with live.client.stream("POST", "/generate", json=GENERATE | {"stream": True}) as answer:
        blocks = answer.iter_bytes()
        next(blocks)
        live.process.send_signal(signal.SIGTERM)
        rest = b"".join(blocks)
    assert rest.endswith(b"data: [DONE]\n\n")
    assert b'"type":"length"' in rest
    assert live.process.wait(END_LIMIT_S) == 0
    assert "Remaining number of requests 1" in live.log
    assert "Remaining number of requests 0" in live.log


def test_a_second_sigterm_ends_at_once(starting: Start) -> None:
    live = starting(**SLOW)
    long = GENERATE | {"sampling_params": {"max_new_tokens": 5000}, "stream": True}
    with live.client.stream("POST", "/generate", json=long) as answer:
        blocks = answer.iter_bytes()
        next(blocks)
        live.process.send_signal(signal.SIGTERM)
        live.until(lambda: "Remaining number of requests 1" in live.log)
        with pytest.raises(subprocess.TimeoutExpired):  # one signal waits for the request
            live.process.wait(0.3)
        live.process.send_signal(signal.SIGTERM)
        live.process.wait(END_LIMIT_S)
    assert "Remaining number of requests 0" not in live.log


def test_an_unknown_flag_is_argparses_own_refusal() -> None:
    argv = [sys.executable, "-m", "specbench.embedded.simulated", "--model-path", "kimi", "--no-such-flag", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=START_LIMIT_S)
    assert done.returncode == 2
    assert "unrecognized arguments: --no-such-flag" in done.stderr
