"""vLLM's HTTP: OpenAI's streaming bodies, and what its events count.

Read in 0.32.0. With `continuous_usage_stats` each chunk carries cumulative completion tokens, so that the tokens of a step
are counted; a client that is slow to read may get two steps in one chunk. Counts of speculation by request come only from
servers started with `--per-request-spec-decode-metrics`, in the last event, under `metrics.speculative_decoding`. They
hold the steps that drafted; a step without a draft emits one token and is added here as a step that accepted none.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from specbench.dialects import ChunkFacts, HttpRequest, Message
from specbench.dialects.event_json import count_of, mapping_of, object_of
from specbench.dialects.openai_bodies import streaming_request
from specbench.suite import Workload

PARTS = ("reasoning_content", "reasoning", "content")
"""Where a delta's text stands; a reasoning parser's was renamed."""


def workload_request(messages: Sequence[Message], workload: Workload, served_model: str) -> HttpRequest:
    """The streaming request of a workload, by its `api`; `generate` is `/v1/completions` with the raw text."""
    own = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    return streaming_request(messages, workload, served_model, own)


class Reader:
    """Events of `/v1/chat/completions` and `/v1/completions`."""

    def __init__(self) -> None:
        self._output_tokens = 0

    def read(self, data: bytes) -> ChunkFacts:
        """`data` is the payload of one event. Raises ValueError on garbage."""
        event = object_of(data)
        if error := event.get("error"):
            return ChunkFacts(error=str(mapping_of(error).get("message") or error), carries_tokens=False)
        usage, choices = mapping_of(event.get("usage")), event.get("choices")
        choice = mapping_of(choices[0]) if isinstance(choices, list) and choices else {}
        output_tokens = count_of(usage.get("completion_tokens"))
        text = _text(choice)
        grown = output_tokens is not None and output_tokens > self._output_tokens
        self._output_tokens = max(self._output_tokens, output_tokens or 0)
        reason = choice.get("finish_reason")
        return ChunkFacts(
            text=text,
            carries_tokens=bool(choice) and bool(text or grown),
            output_tokens=output_tokens,
            prompt_tokens=count_of(usage.get("prompt_tokens")),
            cached_tokens=count_of(mapping_of(usage.get("prompt_tokens_details")).get("cached_tokens")),
            finish_reason=reason if isinstance(reason, str) else None,
            **_speculation(mapping_of(mapping_of(event.get("metrics")).get("speculative_decoding")), self._output_tokens),
        )


def _speculation(counted: Mapping[str, Any], output_tokens: int) -> dict[str, Any]:
    """Counts of a request with the steps that drafted nothing: the first token is the prefill's, a step yields one more
    than it accepts. Where an answer ends inside a step the rest is negative, and none is added."""
    drafted_steps = count_of(counted.get("num_spec_steps"))
    accepted = count_of(counted.get("num_accepted_draft_tokens"))
    if drafted_steps is None or accepted is None:
        return {}
    plain_steps = max(0, output_tokens - 1 - accepted - drafted_steps)
    histogram = counted.get("acceptance_histogram")
    counts = [count_of(one) for one in histogram] if isinstance(histogram, list) else []
    whole = [one for one in counts if one is not None]
    return {
        "verify_count": drafted_steps + plain_steps,
        "correct_tokens": accepted,
        "proposed_tokens": count_of(counted.get("num_draft_tokens")),
        "accept_histogram": (whole[0] + plain_steps, *whole[1:]) if whole and len(whole) == len(counts) else (),
    }


def _text(choice: Mapping[str, Any]) -> str:
    delta = mapping_of(choice.get("delta"))
    parts = (*(delta.get(name) for name in PARTS), choice.get("text"))
    return "".join(part for part in parts if isinstance(part, str))
