"""Answers in SGLang's words: the events of a streamed request, and the whole of one that is not streamed."""

from typing import Any

import msgspec

from specbench import clock
from specbench.dialects.sglang_version import NEW_INFO_NAMES, meta_info_keys
from specbench.dialects.sglang_version import parse as parse_version
from specbench.embedded.interface import EngineFacts, StepOutput

DONE = b"data: [DONE]\n\n"
HISTOGRAM_NAMES_SINCE = parse_version("0.5.9")
RATE_NAMES_SINCE = parse_version("0.5.4")


def event(value: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


class Tally:
    """What one request has got so far."""

    def __init__(self, request_id: str, facts: EngineFacts) -> None:
        self.request_id = request_id
        self._facts = facts
        self._began_s = clock.now_s()
        self.text = ""
        self.output_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.finish_reason: str | None = None
        self._verify_count = 0
        self._correct_tokens = 0
        self._proposed_tokens = 0
        self._histogram: list[int] = []

    def add(self, output: StepOutput) -> None:
        self.text += output.text
        self.output_tokens += output.new_tokens
        self.prompt_tokens = max(self.prompt_tokens, output.prompt_tokens)
        self.cached_tokens = max(self.cached_tokens, output.cached_tokens)
        self.finish_reason = output.finish_reason
        if output.verify:
            self._verify(output.correct_tokens or 0, output.proposed_tokens)

    def _verify(self, correct_tokens: int, proposed_tokens: int | None) -> None:
        self._verify_count += 1
        self._correct_tokens += correct_tokens
        self._proposed_tokens += max(0, self._facts.draft_tokens - 1) if proposed_tokens is None else proposed_tokens
        self._histogram += [0] * (correct_tokens + 1 - len(self._histogram))
        self._histogram[correct_tokens] += 1

    def speculation(self) -> dict[str, Any]:
        """The counts under the version's own names; empty before the first verify step, as there."""
        if not self._verify_count:
            return {}
        version = parse_version(self._facts.dialect_version)
        keys = meta_info_keys(self._facts.dialect_version)
        counts: dict[str, Any] = {keys.verify_count: self._verify_count}
        if version is None or RATE_NAMES_SINCE is None or version >= RATE_NAMES_SINCE:
            counts["spec_accept_length"] = self.output_tokens / self._verify_count
            counts["spec_accept_rate"] = self._correct_tokens / max(1, self._proposed_tokens)
        if keys.correct and keys.proposed:
            counts[keys.correct] = self._correct_tokens
            counts[keys.proposed] = self._proposed_tokens
        if keys.histogram:
            counts[keys.histogram] = self._histogram
        return counts

    def meta_info(self) -> dict[str, Any]:
        """Of `/generate`. Before 0.5.6 the speculation counts stand in the last event only."""
        info: dict[str, Any] = {
            "id": self.request_id,
            "finish_reason": self._finish(),
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
        }
        version = parse_version(self._facts.dialect_version)
        if self.finish_reason:
            info["e2e_latency"] = clock.now_s() - self._began_s
        if self.finish_reason or version is None or version >= NEW_INFO_NAMES:
            info |= self.speculation()
        return info

    def _finish(self) -> dict[str, Any] | None:
        if self.finish_reason is None:
            return None
        return {"type": self.finish_reason, "length": self.output_tokens}

    def usage(self) -> dict[str, Any]:
        """Of the OpenAI endpoints; cached tokens need `--enable-cache-report` there and are left out."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.output_tokens,
            "completion_tokens": self.output_tokens,
            "prompt_tokens_details": None,
        }


class GenerateEvents:
    """`/generate`: cumulative text and counts, one event a step."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def step(self, output: StepOutput) -> bytes:
        self._tally.add(output)
        return event(self.whole())

    def end(self) -> bytes:
        return DONE

    def failure(self, message: str) -> bytes:
        return event({"error": {"message": message}}) + DONE

    def whole(self) -> dict[str, Any]:
        return {"text": self._tally.text, "meta_info": self._tally.meta_info()}


class ChatEvents:
    """`/v1/chat/completions`: role, content, finish, speculation and usage chunks, in that order."""

    def __init__(self, tally: Tally, facts: EngineFacts, body: dict[str, Any]) -> None:
        options = body.get("stream_options") or {}
        self._tally = tally
        self._usage = bool(options.get("include_usage"))
        self._usage_each = bool(options.get("continuous_usage_stats"))
        self._details = bool(body.get("return_spec_tokens_details"))
        self._model = facts.served_model_name
        self._created = int(clock.wall_s())
        self._begun = False

    def step(self, output: StepOutput) -> bytes:
        """Nothing for a step that made no printable text: its tokens are counted with the next."""
        self._tally.add(output)
        role = b"" if self._begun else self._delta({"role": "assistant", "content": ""}, usage=False)
        self._begun = True
        content = self._delta({"content": output.text}, usage=self._usage_each) if output.text else b""
        return role + content

    def end(self) -> bytes:
        last = self._delta({}, usage=self._usage_each, finish_reason=self._tally.finish_reason or "stop")
        if self._details and (counts := self._tally.speculation()):
            last += event(self._envelope([]) | {"sglext": {"spec_tokens_details": counts}})
        if self._usage:
            last += event(self._envelope([]) | {"usage": self._tally.usage()})
        return last + DONE

    def failure(self, message: str) -> bytes:
        return event(api_error(message, 500)) + DONE

    def whole(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self._tally.text, "reasoning_content": None, "tool_calls": None}
        choice = {"index": 0, "message": message, "finish_reason": self._tally.finish_reason}
        answer = self._envelope([choice]) | {"object": "chat.completion", "usage": self._tally.usage()}
        if self._details and (counts := self._tally.speculation()):
            answer["sglext"] = {"spec_tokens_details": counts}
        return answer

    def _delta(self, delta: dict[str, Any], *, usage: bool, finish_reason: str | None = None) -> bytes:
        chunk = self._envelope([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}])
        return event(chunk | {"usage": self._tally.usage()} if usage else chunk)

    def _envelope(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._tally.request_id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }


Events = GenerateEvents | ChatEvents


def api_error(message: str, status_code: int) -> dict[str, Any]:
    """The OpenAI endpoints' shape."""
    kind = "BadRequestError" if status_code == 400 else "InternalServerError"
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status_code}
