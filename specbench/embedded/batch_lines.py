"""SGLang's prefill and decode lines as each version writes them. Pure; formats and definitions as read in its sources."""

from typing import Final, NamedTuple

from packaging.version import Version

from specbench.embedded.interface import EngineFacts, EngineStep
from specbench.units import PerSecond, Ratio

CACHE_HIT_RATE_DROPPED: Final = Version("0.4.4")
GRAPH_FLAG: Final = Version("0.4.6.post5")
ACCEPT_RATE: Final = Version("0.5.4")
COMMA_HEAD: Final = Version("0.5.4.post3")
PREFILL_THROUGHPUT: Final = Version("0.5.9")
PREFILL_GRAPH_FIRST: Final = Version("0.5.10")
PENDING_TOKENS: Final = Version("0.5.11")
RATE_OVER_DRAFT_TOKENS: Final = Version("0.5.5.post1")
RATE_STRICT: Final = Version("0.5.11")
DECODE_ONLY_COUNTERS: Final = Version("0.5.4")
"""Before it every prefill adds its requests to the verify steps, which pulls the accept length towards 1."""


class Acceptance(NamedTuple):
    """Since the line before: accepted draft tokens (D) and verify steps (S)."""

    correct_tokens: int
    verify_count: int

    @property
    def length(self) -> float:
        return (self.correct_tokens + self.verify_count) / self.verify_count


def trailing_comma(version: Version) -> bool:
    """Whether batch lines end with `, `."""
    return Version("0.4.4") <= version < Version("0.4.6") or Version("0.4.10") <= version < Version("0.5.9")


def head(word: str, step_index: int, version: Version) -> str:
    """`Decode batch. `, `Decode batch [40], ` or `Decode batch, `."""
    if version >= COMMA_HEAD:
        return f"{word} batch, "
    return f"{word} batch [{step_index}], " if version >= ACCEPT_RATE else f"{word} batch. "


def accept_rate(acceptance: Acceptance, draft_tokens: int, steps: int, version: Version) -> Ratio:
    """By the definition of that version; three were in use."""
    if version >= RATE_STRICT:
        return acceptance.correct_tokens / (acceptance.verify_count * max(1, draft_tokens - 1))
    return acceptance.length / (draft_tokens if version >= RATE_OVER_DRAFT_TOKENS else steps + 1)


def decode_line(
    step: EngineStep, facts: EngineFacts, acceptance: Acceptance | None, step_index: int, gen_throughput_tps: PerSecond
) -> str:
    """`acceptance` None: no speculation."""
    version = Version(facts.dialect_version)
    parts = [*_batch_parts(step, facts)]
    if acceptance is not None:
        parts.append(f"accept len: {acceptance.length:.2f}")
        if version >= ACCEPT_RATE:
            parts.append(f"accept rate: {accept_rate(acceptance, facts.draft_tokens, facts.steps, version):.2f}")
    if version >= GRAPH_FLAG and facts.graph_word:
        parts.append(f"{facts.graph_word} graph: {step.graph}")
    parts += [f"gen throughput (token/s): {gen_throughput_tps:.2f}", f"#queue-req: {step.queue_requests}"]
    return head("Decode", step_index, version) + ", ".join(parts) + (", " if trailing_comma(version) else "")


def prefill_line(step: EngineStep, facts: EngineFacts, step_index: int, input_throughput_tps: PerSecond) -> str:
    """One a prefill, whatever the interval."""
    version = Version(facts.dialect_version)
    parts = [f"#new-seq: {step.new_requests}", f"#new-token: {step.new_tokens}", f"#cached-token: {step.cached_tokens}"]
    if version < CACHE_HIT_RATE_DROPPED:
        parts.append(f"cache hit rate: {100 * _hit_ratio(step):.2f}%")
    parts += [
        f"token usage: {_usage(step, facts):.2f}",
        f"#running-req: {step.running_requests}",
        f"#queue-req: {step.queue_requests}",
    ]
    throughput = f"input throughput (token/s): {input_throughput_tps:.2f}"
    graph = [f"{facts.graph_word} graph: False"] if facts.graph_word else []
    if version >= PENDING_TOKENS:
        parts.append("#pending-token: 0")
    if version >= PREFILL_GRAPH_FIRST:
        parts += [*graph, throughput]
    elif version >= PREFILL_THROUGHPUT:
        parts += [throughput, *graph]
    return head("Prefill", step_index, version) + ", ".join(parts) + (", " if trailing_comma(version) else "")


def _batch_parts(step: EngineStep, facts: EngineFacts) -> tuple[str, ...]:
    return (
        f"#running-req: {step.running_requests}",
        f"#token: {step.used_tokens}",
        f"token usage: {_usage(step, facts):.2f}",
    )


def _usage(step: EngineStep, facts: EngineFacts) -> Ratio:
    return step.used_tokens / facts.capacity_tokens


def _hit_ratio(step: EngineStep) -> Ratio:
    total = step.cached_tokens + step.new_tokens
    return step.cached_tokens / total if total else 0.0
