"""Bodies by version, and event streams as the versions' sources write them."""

import json
from typing import Any

import pytest

from specbench.dialects import ChunkFacts, Message
from specbench.dialects.sglang_http import ChatReader, GenerateReader, chat_request, generate_request

TURNS = (Message(role="system", content="be brief"), Message(role="user", content="salt?"))


def chat_event(delta: dict[str, Any] | None, usage: tuple[int, int] | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": more.pop("finish_reason", None)}]
    counted = (
        None if usage is None else {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    )
    return json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": choices, "usage": counted, **more}).encode()


def generate_event(text: str, **info: Any) -> bytes:
    return json.dumps({"text": text, "meta_info": {"id": "x", "prompt_tokens": 7, "finish_reason": None, **info}}).encode()


def test_chat_body() -> None:
    known: dict[str, Any] = {"model": "m", "max_output_tokens": 9, "temperature": 0.0}
    new = chat_request(TURNS, ignore_eos=True, version="0.5.19", **known)
    assert new.path == "/v1/chat/completions"
    assert new.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "salt?"}],
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "temperature": 0.0,
        "max_tokens": 9,
        "ignore_eos": True,
        "return_spec_tokens_details": True,
    }
    old = chat_request(TURNS, ignore_eos=False, version="0.5.18", **known)
    assert set(new.body) - set(old.body) == {"ignore_eos", "return_spec_tokens_details"}


def test_generate_body() -> None:
    request = generate_request(TURNS, max_output_tokens=9, temperature=0.5, ignore_eos=True)
    assert request.path == "/generate"
    assert request.body == {
        "text": "be brief\n\nsalt?",
        "sampling_params": {"temperature": 0.5, "max_new_tokens": 9, "ignore_eos": True},
        "stream": True,
    }


def test_chat_stream_of_a_new_version() -> None:
    """Role, two content chunks with cumulative usage, finish, sglext, usage."""
    details = {
        "spec_verify_ct": 2,
        "spec_num_correct_drafts": 3,
        "spec_num_proposed_drafts": 6,
        "spec_correct_drafts_histogram": [0, 1, 1],
    }
    reader = ChatReader()
    seen = [
        reader.read(event)
        for event in (
            chat_event({"role": "assistant", "content": ""}),
            chat_event({"reasoning_content": "hm"}, (7, 1)),
            chat_event({"content": "Na"}, (7, 3)),
            chat_event({}, finish_reason="stop"),
            chat_event(None, sglext={"spec_tokens_details": details}),
            chat_event(None, (7, 6)),
        )
    ]
    assert [one.carries_tokens for one in seen] == [False, True, True, False, False, False]
    assert [one.text for one in seen] == ["", "hm", "Na", "", "", ""]
    assert [one.output_tokens for one in seen] == [None, 1, 3, None, None, 6]
    assert seen[3].finish_reason == "stop"
    assert seen[4] == ChunkFacts(
        verify_count=2, correct_tokens=3, proposed_tokens=6, accept_histogram=(0, 1, 1), carries_tokens=False
    )
    assert seen[5].prompt_tokens == 7


def test_chat_stream_of_an_old_version_counts_only_at_the_end() -> None:
    reader = ChatReader()
    assert reader.read(chat_event({"role": "assistant", "content": "Na"})) == ChunkFacts(text="Na")
    assert reader.read(chat_event(None, (7, 6))) == ChunkFacts(output_tokens=6, prompt_tokens=7, carries_tokens=False)


@pytest.mark.parametrize(
    ("info", "correct", "proposed", "histogram"),
    [
        ({"spec_verify_ct": 4}, None, None, ()),
        ({"spec_verify_ct": 4, "spec_accept_length": 2.0, "spec_accept_rate": 0.5}, None, None, ()),
        ({"spec_verify_ct": 4, "spec_accept_token_num": 5, "spec_draft_token_num": 12}, 5, 12, ()),
        (
            {
                "spec_verify_ct": 4,
                "spec_accept_token_num": 5,
                "spec_draft_token_num": 12,
                "spec_accept_histogram": [1, 1, 2],
            },
            5,
            12,
            (1, 1, 2),
        ),
        ({"spec_verify_ct": 4, "spec_accepted_drafts": 5, "spec_proposed_drafts": 12}, 5, 12, ()),
        (
            {
                "spec_verify_ct": 4,
                "spec_accepted_drafts": 5,
                "spec_num_correct_drafts": 5,
                "spec_num_proposed_drafts": 12,
                "spec_accept_histogram": [1, 1, 2],
                "spec_correct_drafts_histogram": [1, 1, 2],
            },
            5,
            12,
            (1, 1, 2),
        ),
    ],
)
def test_generate_keys_of_every_version(
    info: dict[str, Any], correct: int | None, proposed: int | None, histogram: tuple[int, ...]
) -> None:
    found = GenerateReader().read(generate_event("Na", completion_tokens=9, **info))
    assert found.verify_count == 4
    assert (found.correct_tokens, found.proposed_tokens, found.accept_histogram) == (correct, proposed, histogram)


def test_generate_stream_is_cumulative() -> None:
    reader = GenerateReader()
    seen = [
        reader.read(generate_event(text, completion_tokens=count, cached_tokens=2, finish_reason=reason))
        for text, count, reason in (
            ("Na", 1, None),
            ("Na", 2, None),  # half a character: tokens, but no text yet
            ("NaCl", 5, None),
            ("NaCl", 5, {"type": "length", "length": 5}),
        )
    ]
    assert [one.text for one in seen] == ["Na", "", "Cl", ""]
    assert [one.output_tokens for one in seen] == [1, 2, 5, 5]
    assert [one.carries_tokens for one in seen] == [True, True, True, False]
    assert (seen[3].finish_reason, seen[3].cached_tokens, seen[3].prompt_tokens) == ("length", 2, 7)


def test_generate_stream_that_sends_only_what_is_new() -> None:
    reader = GenerateReader()
    texts = [
        reader.read(generate_event(text, completion_tokens=count)).text for count, text in enumerate(("Na", "Cl", "!"), 1)
    ]
    assert texts == ["Na", "Cl", "!"]


@pytest.mark.parametrize("reader", [ChatReader, GenerateReader])
@pytest.mark.parametrize(
    ("event", "error"),
    [
        (b'{"error": {"message": "too long", "code": 400}}', "too long"),
        (b'{"object": "error", "message": "too long"}', "too long"),
        (b'{"error": "too long"}', "too long"),
    ],
)
def test_errors_inside_a_stream(reader: type[ChatReader] | type[GenerateReader], event: bytes, error: str) -> None:
    assert reader().read(event) == ChunkFacts(error=error, carries_tokens=False)


def test_an_aborted_request_is_an_error() -> None:
    aborted = generate_event("Na", completion_tokens=1, finish_reason={"type": "abort", "message": "out of memory"})
    assert GenerateReader().read(aborted).error == "out of memory"
    assert ChatReader().read(chat_event({}, finish_reason="abort")).error == "the server aborted the request"


@pytest.mark.parametrize("reader", [ChatReader, GenerateReader])
@pytest.mark.parametrize("garbage", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b'{"a": 1'])
def test_garbage_is_a_value_error(reader: type[ChatReader] | type[GenerateReader], garbage: bytes) -> None:
    with pytest.raises(ValueError, match="an event that is no JSON"):
        reader().read(garbage)


@pytest.mark.parametrize("reader", [ChatReader, GenerateReader])
@pytest.mark.parametrize("odd", [b'{"choices": [null], "text": 1, "meta_info": 3, "usage": [], "sglext": 1}', b"{}"])
def test_odd_shapes_say_nothing(reader: type[ChatReader] | type[GenerateReader], odd: bytes) -> None:
    assert reader().read(odd) == ChunkFacts(carries_tokens=False)


@pytest.mark.parametrize("count", [-5, 10**24, True, 1.5, "7"])
def test_a_count_that_can_be_none_is_no_count(count: object) -> None:
    event = {"choices": [{"delta": {"content": "x"}}], "usage": {"completion_tokens": count}}
    assert ChatReader().read(json.dumps(event).encode()).output_tokens is None


def test_thinking_is_asked_for_under_both_names_and_only_where_stated() -> None:
    known: dict[str, Any] = {"model": "m", "max_output_tokens": 8, "temperature": 0.0, "ignore_eos": False, "version": None}
    off = chat_request(TURNS, thinking=False, **known)
    assert off.body["chat_template_kwargs"] == {"thinking": False, "enable_thinking": False}
    assert "chat_template_kwargs" not in chat_request(TURNS, **known).body
