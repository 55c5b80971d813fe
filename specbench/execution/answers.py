"""An exchange, decoded into the record of one request. Pure."""

from collections.abc import Sequence

from msgspec import Struct, structs

from specbench.dialects import ChunkFacts, EventReader
from specbench.execution.client import Exchange
from specbench.execution.sse import events
from specbench.records import RequestRecord, TokenSource
from specbench.units import Second

DONE = b"[DONE]"


class Answer(Struct, kw_only=True):
    """The events of one response, as far as they could be read."""

    facts: list[tuple[Second, ChunkFacts]] = []
    done: bool = False
    """`[DONE]` was seen."""
    error: str | None = None


def record_of(
    blank: RequestRecord, seen: Exchange, reader: EventReader, stated_source: TokenSource | None, zero_s: Second
) -> RequestRecord:
    """`blank` names the request and its due time; `stated_source` is set where counts don't come from `usage`;
    `zero_s` is the clock's reading when the trial began."""
    answer = read_answer(seen, reader)
    chunks = [(at_s, facts) for at_s, facts in answer.facts if facts.carries_tokens]
    counts = chunk_counts([facts for _, facts in chunks])
    return structs.replace(
        blank,
        sent_s=seen.sent_s - zero_s,
        done_s=seen.done_s - zero_s,
        chunk_s=tuple(at_s - zero_s for at_s, _ in chunks),
        chunk_tokens=counts,
        token_source=token_source(answer.facts, counts, stated_source),
        output_text="".join(facts.text for _, facts in answer.facts),
        status_code=seen.status_code,
        error=seen.error or answer.error or _unfinished(answer),
        **last_counts([facts for _, facts in answer.facts]),
    )


def read_answer(seen: Exchange, reader: EventReader) -> Answer:
    """Stops at `[DONE]`, at an error, or at the first event that can't be read; what came before is kept."""
    answer = Answer()
    for at_s, payload in events(seen.reads, closed_well=seen.error is None):
        if payload.strip() == DONE:
            answer.done = True
            break
        try:
            facts = reader.read(payload)
        except ValueError as error:
            answer.error = f"an event that can't be read: {error}: {payload[:80]!r}"
            break
        answer.facts.append((at_s, facts))
        if facts.error:
            answer.error = f"the server reported: {' '.join(facts.error.split())[:300]}"
            break
    return answer


def _unfinished(answer: Answer) -> str | None:
    if not answer.facts:
        return "the answer held no events"
    if answer.done or any(facts.finish_reason for _, facts in answer.facts):
        return None
    return "the answer ended without a finish reason or [DONE]"


def chunk_counts(chunks: Sequence[ChunkFacts]) -> tuple[int, ...]:
    """New tokens of each chunk from the cumulative counts; empty when one lacks a count or a count falls."""
    totals = [facts.output_tokens for facts in chunks]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals):
        return ()
    counts = tuple(after - before for before, after in zip([0, *known], known, strict=False))
    return counts if min(counts, default=0) >= 0 else ()


def token_source(
    facts: Sequence[tuple[Second, ChunkFacts]], counts: Sequence[int], stated: TokenSource | None
) -> TokenSource:
    """Where the counts came from, as far as there are any."""
    if all(one.output_tokens is None for _, one in facts):
        return "none"
    return stated or ("usage_per_chunk" if counts else "usage_at_end")


COUNTED = (
    "prompt_tokens",
    "output_tokens",
    "cached_tokens",
    "verify_count",
    "correct_tokens",
    "proposed_tokens",
    "finish_reason",
)


def last_counts(facts: Sequence[ChunkFacts]) -> dict[str, object]:
    """Counts are cumulative: the last one said of each kind holds."""
    last: dict[str, object] = {}
    for one in facts:
        last |= {name: getattr(one, name) for name in COUNTED if getattr(one, name) is not None}
        if one.accept_histogram:
            last["accept_histogram"] = one.accept_histogram
    return last
