"""SGLang's HTTP: request bodies and the events of streamed answers.

Read in the sources of 0.4.6, 0.4.9, 0.5.4, 0.5.5, 0.5.9, 0.5.19 and 0.5.23 (`entrypoints/openai`, `tokenizer_manager`):

- Chat, `stream_options.continuous_usage_stats`: each content chunk carries `usage` with cumulative completion tokens.
  Honoured from 0.5.5 (0.5.4 has only `include_usage`; older ones drop the unknown key without an error).
- Chat events, in order: a role chunk (`content` is ""), content chunks (`reasoning_content` instead where a reasoning
  parser runs), one finish chunk with an empty delta, from 0.5.19 an `sglext` chunk with `choices: []` if
  `return_spec_tokens_details` was asked for, a usage chunk with `choices: []`, `[DONE]`. A step whose tokens make no
  printable text yet sends no chunk at all: its tokens are counted with the next one.
- `/generate`: one event a step; `text` and `meta_info` are cumulative, also when a step adds no text. With
  `--stream-output` (0.5.23: `--incremental-streaming-output`) `text` is only what is new. An error is an event of its own.
- Per-request keys of speculation were renamed three times (`sglang_version.META_INFO_KEYS`); while streaming, they are
  cumulative in each event where the version fills them in at all, else they stand in the last one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from specbench.dialects import ChunkFacts, EventReader, HttpRequest, Message
from specbench.dialects.event_json import count_of, mapping_of, object_of
from specbench.dialects.sglang_version import META_INFO_KEYS, SPEC_DETAILS, MetaInfoKeys, parse
from specbench.suite import Workload

ENDED_BADLY = {"abort": "the server aborted the request", "error": "the server ended the request by an error"}


def chat_request(
    messages: Sequence[Message],
    *,
    model: str,
    max_output_tokens: int,
    temperature: float,
    ignore_eos: bool,
    version: str | None,
    thinking: bool | None = None,
) -> HttpRequest:
    """`/v1/chat/completions`, streaming, with every count that the version can give."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "temperature": temperature,
        "max_tokens": max_output_tokens,
    }
    if ignore_eos:
        body["ignore_eos"] = True
    if thinking is not None:  # Kimi's and DeepSeek's templates know the one name, Qwen's the other
        body["chat_template_kwargs"] = {"thinking": thinking, "enable_thinking": thinking}
    parsed = parse(version)
    if parsed is None or parsed >= SPEC_DETAILS:  # an older one drops the unknown key
        body["return_spec_tokens_details"] = True
    return HttpRequest(path="/v1/chat/completions", body=body)


def generate_request(
    messages: Sequence[Message], *, max_output_tokens: int, temperature: float, ignore_eos: bool
) -> HttpRequest:
    """`/generate`, streaming: the turns as raw text, a blank line between, no chat template."""
    sampling: dict[str, Any] = {"temperature": temperature, "max_new_tokens": max_output_tokens}
    if ignore_eos:
        sampling["ignore_eos"] = True
    text = "\n\n".join(message.content for message in messages)
    return HttpRequest(path="/generate", body={"text": text, "sampling_params": sampling, "stream": True})


def workload_request(messages: Sequence[Message], workload: Workload, served_model: str, version: str | None) -> HttpRequest:
    """The streaming request of a workload, by its `api`. `version` is SGLang's, or that of the dialect spoken."""
    if workload.api == "generate":
        return generate_request(
            messages,
            max_output_tokens=workload.max_output_tokens,
            temperature=workload.temperature,
            ignore_eos=workload.ignore_eos,
        )
    return chat_request(
        messages,
        model=served_model,
        max_output_tokens=workload.max_output_tokens,
        temperature=workload.temperature,
        ignore_eos=workload.ignore_eos,
        version=version,
        thinking=workload.thinking,
    )


def workload_reader(workload: Workload) -> EventReader:
    """Reads the answers to `workload_request`."""
    return GenerateReader() if workload.api == "generate" else ChatReader()


class ChatReader:
    """Events of `/v1/chat/completions`."""

    def __init__(self) -> None:
        self._output_tokens = 0

    def read(self, data: bytes) -> ChunkFacts:
        """`data` is the payload of one event. Raises ValueError on garbage."""
        event = object_of(data)
        error = _error(event)
        if error is not None:
            return ChunkFacts(error=error, carries_tokens=False)
        usage = mapping_of(event.get("usage"))
        output_tokens = count_of(usage.get("completion_tokens"))
        choice = mapping_of(next(iter(_items(event.get("choices"))), None))
        text, carries = self._delta(choice, output_tokens)
        finish_reason = choice.get("finish_reason")
        spec = _first(mapping_of(event.get("sglext")).get("spec_tokens_details"))
        return _facts(
            spec,
            text=text,
            carries_tokens=carries,
            output_tokens=output_tokens,
            prompt_tokens=count_of(usage.get("prompt_tokens")),
            cached_tokens=count_of(mapping_of(usage.get("prompt_tokens_details")).get("cached_tokens")),
            finish_reason=finish_reason if isinstance(finish_reason, str) else None,
            error=ENDED_BADLY.get(finish_reason) if isinstance(finish_reason, str) else None,
        )

    def _delta(self, choice: Mapping[str, Any], output_tokens: int | None) -> tuple[str, bool]:
        """New text, and whether the event brings tokens: the role, the finish and the usage chunk bring none."""
        delta = mapping_of(choice.get("delta"))
        text = "".join(part for key in ("reasoning_content", "content") if isinstance(part := delta.get(key), str))
        grown = output_tokens is not None and output_tokens > self._output_tokens
        self._output_tokens = max(self._output_tokens, output_tokens or 0)
        return text, bool(choice) and bool(text or delta.get("tool_calls") or grown)


class GenerateReader:
    """Events of `/generate`."""

    def __init__(self) -> None:
        self._text = ""
        self._output_tokens = 0
        self._incremental = False

    def read(self, data: bytes) -> ChunkFacts:
        """`data` is the payload of one event. Raises ValueError on garbage."""
        event = object_of(data)
        error = _error(event)
        if error is not None:
            return ChunkFacts(error=error, carries_tokens=False)
        info = mapping_of(event.get("meta_info"))
        output_tokens = count_of(info.get("completion_tokens"))
        text = self._new_text(event.get("text"))
        grown = output_tokens is not None and output_tokens > self._output_tokens
        self._output_tokens = max(self._output_tokens, output_tokens or 0)
        reason = info.get("finish_reason")
        kind = reason.get("type") if isinstance(reason, dict) else reason
        return _facts(
            info,
            text=text,
            carries_tokens=grown or bool(text),
            output_tokens=output_tokens,
            prompt_tokens=count_of(info.get("prompt_tokens")),
            cached_tokens=count_of(info.get("cached_tokens")),
            finish_reason=kind if isinstance(kind, str) else None,
            error=str(mapping_of(reason).get("message") or "the server aborted the request") if kind == "abort" else None,
        )

    def _new_text(self, text: Any) -> str:
        """Text behind what came before; the whole of it once a server is seen to send only what is new."""
        if not isinstance(text, str):
            return ""
        if not self._incremental and text.startswith(self._text):
            new, self._text = text[len(self._text) :], text
            return new
        self._incremental = True
        return text


def _facts(info: Mapping[str, Any], **known: Any) -> ChunkFacts:
    """Adds the counts of speculation, under whichever names they come."""
    keys = next((keys for _, keys in META_INFO_KEYS if _has(info, keys)), None)
    if keys is None:
        return ChunkFacts(verify_count=count_of(info.get("spec_verify_ct")), **known)
    histogram = next((found for _, one in META_INFO_KEYS if one.histogram and (found := info.get(one.histogram))), ())
    return ChunkFacts(
        verify_count=count_of(info.get(keys.verify_count)),
        correct_tokens=count_of(info.get(keys.correct or "")),
        proposed_tokens=count_of(info.get(keys.proposed or "")),
        accept_histogram=tuple(count for one in _items(histogram) if (count := count_of(one)) is not None),
        **known,
    )


def _has(info: Mapping[str, Any], keys: MetaInfoKeys) -> bool:
    return keys.correct is not None and keys.correct in info


def _error(event: Mapping[str, Any]) -> str | None:
    error = event.get("error")
    if isinstance(error, dict):
        return str(error.get("message") or error)
    if error is not None:
        return str(error) or "an error without a message"
    return str(event.get("message")) if event.get("object") == "error" else None


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _first(value: Any) -> Mapping[str, Any]:
    return mapping_of(value[0] if isinstance(value, list) and value else value)
