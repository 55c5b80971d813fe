"""Request bodies to a `GenerateRequest`; whatever is wrong with one is said in a sentence."""

from collections.abc import Mapping
from typing import Any

from specbench.dialects import Message
from specbench.embedded.interface import GenerateRequest, RequestRefused

DEFAULT_TOKENS = 128


def chat_body(body: Mapping[str, Any], request_id: str) -> GenerateRequest:
    """Of `/v1/chat/completions`. Raises RequestRefused."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestRefused("'messages' must be a list of at least one message")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return _request(body, request_id, limit, messages=tuple(_message(one) for one in messages))


def generate_body(body: Mapping[str, Any], request_id: str) -> GenerateRequest:
    """Of `/generate`, one text a request. Raises RequestRefused."""
    text = body.get("text")
    if not isinstance(text, str):
        raise RequestRefused("'text' must be a string; lists and input_ids are not served here")
    sampling = body.get("sampling_params") or {}
    if not isinstance(sampling, dict):
        raise RequestRefused("'sampling_params' must be an object")
    return _request(sampling, request_id, sampling.get("max_new_tokens"), prompt_text=text)


def _request(body: Mapping[str, Any], request_id: str, limit: Any, **prompt: Any) -> GenerateRequest:
    max_tokens = DEFAULT_TOKENS if limit is None else limit
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise RequestRefused(f"the number of new tokens must be a whole number of at least 1, got {max_tokens!r}")
    seed = body.get("seed", body.get("sampling_seed"))
    return GenerateRequest(
        id=request_id,
        max_tokens=max_tokens,
        temperature=_number(body, "temperature", 0.0, 0.0),
        top_p=_number(body, "top_p", 1.0, 0.0),
        ignore_eos=body.get("ignore_eos") is True,
        seed=seed if isinstance(seed, int) else None,
        **prompt,
    )


def _number(body: Mapping[str, Any], key: str, default: float, least: float) -> float:
    value = body.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
        raise RequestRefused(f"'{key}' must be a number of at least {least:g}, got {value!r}")
    return float(value)


def _message(value: Any) -> Message:
    """Text only; the parts form is joined."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        raise RequestRefused("each message must be an object with 'role' and 'content'")
    content = value.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str):
        raise RequestRefused("a message's 'content' must be text")
    return Message(role=value["role"], content=content)
