"""The streaming request of OpenAI's two endpoints, as vLLM and llama.cpp take it beside their own keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from specbench.dialects import HttpRequest, Message
from specbench.suite import Workload


def streaming_request(
    messages: Sequence[Message], workload: Workload, served_model: str, own: Mapping[str, Any]
) -> HttpRequest:
    """By the workload's `api`; `generate` is `/v1/completions` with the raw text. `own`: the engine's keys."""
    body: dict[str, Any] = {
        "model": served_model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": workload.temperature,
        "max_tokens": workload.max_output_tokens,
        **own,
    }
    if workload.ignore_eos:
        body["ignore_eos"] = True
    if workload.api == "generate":
        return HttpRequest(path="/v1/completions", body=body | {"prompt": "\n\n".join(one.content for one in messages)})
    if workload.thinking is not None:
        body["chat_template_kwargs"] = {"thinking": workload.thinking, "enable_thinking": workload.thinking}
    listed = [{"role": one.role, "content": one.content} for one in messages]
    return HttpRequest(path="/v1/chat/completions", body=body | {"messages": listed})
