"""The server's front over real HTTP: SGLang's endpoints, on a live process with the simulated engine behind them."""

import json
import subprocess
import sys

import pytest

from specbench.dialects.sglang_http import ChatReader, GenerateReader
from specbench.dialects.sglang_log import parse_line
from tests.contract.live import CHAT, GENERATE, SPECULATION, START_LIMIT_S, Live, Start


@pytest.fixture(scope="module")
def speculating(starting: Start) -> Live:
    return starting(*SPECULATION, "--enable-metrics", "--decode-log-interval", "4")


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
    assert speculating.gauge("spec_accept_length") == pytest.approx(last.accept_length, abs=0.005)
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


def test_an_unknown_flag_is_argparses_own_refusal() -> None:
    argv = [sys.executable, "-m", "specbench.embedded.simulated", "--model-path", "kimi", "--no-such-flag", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=START_LIMIT_S)
    assert done.returncode == 2
    assert "unrecognized arguments: --no-such-flag" in done.stderr
