"""llama.cpp's answers: counts from `timings`, a token a chunk."""

import json
from typing import Any

import pytest

from specbench.dialects import ChunkFacts, Message
from specbench.dialects.llamacpp_http import Reader, workload_request
from specbench.suite import Workload

TURNS = (Message(role="user", content="Hello"),)


def event(content: str | None, predicted: int, drafted: tuple[int, int] | None = None, **more: Any) -> bytes:
    timings: dict[str, Any] = {"cache_n": 3, "predicted_n": predicted}
    if drafted:
        timings |= {"draft_n": drafted[0], "draft_n_accepted": drafted[1]}
    delta = {} if content is None else {"content": content}
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "timings": timings} | more).encode()


def test_every_chunk_is_counted_by_the_servers_own_total() -> None:
    reader = Reader()
    facts = [reader.read(event(text, count)) for text, count in (("A", 1), ("", 2), ("b", 3))]
    assert [(one.text, one.output_tokens, one.carries_tokens) for one in facts] == [
        ("A", 1, True),
        ("", 2, True),
        ("b", 3, True),
    ]
    assert (facts[0].verify_count, facts[0].proposed_tokens) == (None, 0)


def test_steps_are_what_was_predicted_after_the_first_without_the_accepted() -> None:
    facts = Reader().read(event("x", 8, (16, 3)))
    assert (facts.proposed_tokens, facts.correct_tokens, facts.verify_count, facts.cached_tokens) == (16, 3, 4, 3)
    assert Reader().read(event("x", 2, (4, 3))).verify_count is None


def test_the_last_chunk_and_the_usage() -> None:
    reader = Reader()
    reader.read(event("x", 8))
    last = {
        "choices": [{"text": "", "index": 0, "finish_reason": "length"}],
        "usage": {"completion_tokens": 8, "prompt_tokens": 4},
    }
    facts = reader.read(json.dumps(last).encode())
    assert (facts.carries_tokens, facts.finish_reason, facts.output_tokens, facts.prompt_tokens) == (False, "length", 8, 4)
    assert reader.read(b'{"choices": [], "usage": {"completion_tokens": 8}}').output_tokens == 8


def test_raw_completions_have_their_text_elsewhere() -> None:
    assert Reader().read(b'{"choices": [{"text": " the"}]}') == ChunkFacts(text=" the")


@pytest.mark.parametrize("data", [b"", b"[1]", b"nonsense", b"[" * 3000])
def test_garbage_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="an event that is no JSON"):
        Reader().read(data)


def test_an_error_event() -> None:
    assert Reader().read(b'{"error": {"message": "out of slots"}}').error == "out of slots"


def test_requests_ask_for_counts_and_keep_no_cache() -> None:
    chat = workload_request(TURNS, Workload(name="w", max_output_tokens=9, thinking=False, ignore_eos=True), "m")
    assert chat.path == "/v1/chat/completions"
    assert chat.body["messages"] == [{"role": "user", "content": "Hello"}]
    assert chat.body["timings_per_token"] is True
    assert chat.body["cache_prompt"] is False
    assert chat.body["ignore_eos"] is True
    assert chat.body["chat_template_kwargs"] == {"thinking": False, "enable_thinking": False}
    raw = workload_request(TURNS, Workload(name="w", api="generate"), "m")
    assert (raw.path, raw.body["prompt"]) == ("/v1/completions", "Hello")
