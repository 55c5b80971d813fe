"""vLLM's answers: tokens by chunk from cumulative usage, counts of speculation from the last event."""

import json
from typing import Any

import pytest

from specbench.dialects import ChunkFacts, Message
from specbench.dialects.vllm_http import Reader, workload_request
from specbench.suite import Workload

TURNS = (Message(role="user", content="Hello"), Message(role="user", content="again"))


def event(text: str | None, tokens: int | None, **more: Any) -> bytes:
    choices = [] if text is None else [{"index": 0, "text": text, "finish_reason": None}]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 9, "completion_tokens": tokens}}
    return json.dumps({"choices": choices} | usage | more).encode()


def ending(tokens: int, **counted: Any) -> bytes:
    return event(None, tokens, metrics={"time_to_first_token_ms": None, "speculative_decoding": counted})


def test_each_chunk_is_counted_by_its_cumulative_usage() -> None:
    reader = Reader()
    facts = [reader.read(event(text, tokens)) for text, tokens in (("A", 1), ("bcd", 4), ("", 6), (None, 6))]
    assert [one.output_tokens for one in facts] == [1, 4, 6, 6]
    assert [one.carries_tokens for one in facts] == [True, True, True, False]
    assert facts[0].prompt_tokens == 9
    assert facts[0].verify_count is None


def test_counts_of_a_request_that_drafted_in_every_step() -> None:
    reader = Reader()
    reader.read(event("x" * 8, 8))
    facts = reader.read(
        ending(8, num_spec_steps=3, num_accepted_draft_tokens=4, num_draft_tokens=9, acceptance_histogram=[1, 1, 0, 1])
    )
    assert (facts.verify_count, facts.correct_tokens, facts.proposed_tokens) == (3, 4, 9)
    assert facts.accept_histogram == (1, 1, 0, 1)


def test_steps_without_a_draft_accepted_none() -> None:
    facts = Reader().read(
        ending(20, num_spec_steps=3, num_accepted_draft_tokens=4, num_draft_tokens=9, acceptance_histogram=[1, 1, 0, 1])
    )
    assert facts.verify_count == 20 - 1 - 4
    assert facts.accept_histogram == (13, 1, 0, 1)
    assert sum(facts.accept_histogram) == facts.verify_count


@pytest.mark.parametrize("counted", [{}, {"num_spec_steps": 3}, {"num_spec_steps": -1, "num_accepted_draft_tokens": 0}])
def test_half_of_the_counts_is_none(counted: dict[str, int]) -> None:
    assert Reader().read(ending(5, **counted)).verify_count is None


def test_chat_and_its_reasoning() -> None:
    reader = Reader()
    for delta, text in (
        ({"role": "assistant", "content": ""}, ""),
        ({"reasoning": "so"}, "so"),
        ({"reasoning_content": "so"}, "so"),
        ({"content": "yes"}, "yes"),
    ):
        data = json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode()
        assert reader.read(data) == ChunkFacts(text=text, carries_tokens=bool(text))


def test_an_error_inside_the_stream() -> None:
    facts = Reader().read(b'{"error": {"message": "EngineCore encountered an issue", "code": 500}}')
    assert facts.error == "EngineCore encountered an issue"
    assert Reader().read(b'{"error": "plain"}').error == "plain"


@pytest.mark.parametrize("data", [b"", b"[1]", b"nonsense", b"[" * 3000])
def test_garbage_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="an event that is no JSON"):
        Reader().read(data)


def test_both_requests_ask_for_usage_in_every_chunk() -> None:
    for api, path in (("chat", "/v1/chat/completions"), ("generate", "/v1/completions")):
        request = workload_request(TURNS, Workload(name="w", api=api, ignore_eos=True, thinking=False), "m")  # type: ignore[arg-type]
        assert request.path == path
        assert request.body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
        assert request.body["ignore_eos"] is True
    assert request.body["prompt"] == "Hello\n\nagain"
    assert "chat_template_kwargs" not in request.body
