"""llama.cpp's HTTP: OpenAI's streaming bodies with `timings` of its own.

Read in the answers of b11434. Asked for `timings_per_token`, every chunk carries `timings`: `predicted_n` counts the output
tokens so far, `draft_n` those drafted, `draft_n_accepted` those accepted. One token comes a chunk, also when several were
accepted at once. The first token is the prefill's, as with every engine here; each verify step yields one token beside the
accepted ones, so steps are `predicted_n - 1 - draft_n_accepted`. Steps that drafted nothing are among them; the log's
`mean len` and the counters of `/metrics` leave those out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from specbench.dialects import ChunkFacts, HttpRequest, Message
from specbench.dialects.event_json import count_of, mapping_of, object_of
from specbench.dialects.openai_bodies import streaming_request
from specbench.suite import Workload


def workload_request(messages: Sequence[Message], workload: Workload, served_model: str) -> HttpRequest:
    """The streaming request of a workload, by its `api`. Its cache is told to keep nothing: the server has no flush."""
    return streaming_request(messages, workload, served_model, {"timings_per_token": True, "cache_prompt": False})


class Reader:
    """Events of `/v1/chat/completions` and `/v1/completions`."""

    def __init__(self) -> None:
        self._output_tokens = 0

    def read(self, data: bytes) -> ChunkFacts:
        """`data` is the payload of one event. Raises ValueError on garbage."""
        event = object_of(data)
        if error := event.get("error"):
            text = error.get("message") if isinstance(error, dict) else error
            return ChunkFacts(error=str(text or error), carries_tokens=False)
        timings, usage = mapping_of(event.get("timings")), mapping_of(event.get("usage"))
        choices = event.get("choices")
        choice = mapping_of(choices[0]) if isinstance(choices, list) and choices else {}
        output_tokens = count_of(timings.get("predicted_n"))
        output_tokens = count_of(usage.get("completion_tokens")) if output_tokens is None else output_tokens
        text = _text(choice)
        carries = bool(choice) and bool(text or (output_tokens is not None and output_tokens > self._output_tokens))
        self._output_tokens = max(self._output_tokens, output_tokens or 0)
        drafted, accepted, verified = _drafting(timings)
        reason = choice.get("finish_reason")
        return ChunkFacts(
            text=text,
            carries_tokens=carries,
            output_tokens=output_tokens,
            prompt_tokens=count_of(usage.get("prompt_tokens")),
            cached_tokens=count_of(timings.get("cache_n")),
            finish_reason=reason if isinstance(reason, str) else None,
            proposed_tokens=drafted,
            correct_tokens=accepted,
            verify_count=verified,
        )


def _drafting(timings: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Tokens drafted and accepted, and verify steps. Where it drafted nothing it says nothing: 0 drafted, no steps."""
    drafted, accepted = count_of(timings.get("draft_n")), count_of(timings.get("draft_n_accepted"))
    predicted = count_of(timings.get("predicted_n"))
    if drafted is None and predicted is not None:
        return 0, None, None
    if drafted is None or accepted is None or predicted is None or accepted >= predicted:
        return None, None, None
    return drafted, accepted, predicted - 1 - accepted


def _text(choice: Mapping[str, Any]) -> str:
    delta = mapping_of(choice.get("delta"))
    parts = (delta.get("reasoning_content"), delta.get("content"), choice.get("text"))
    return "".join(part for part in parts if isinstance(part, str))
