"""An exchange, decoded into the record of one request. Pure."""

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from specbench.dialects import ChunkFacts, EventReader
from specbench.execution.client import Exchange, error_sentence
from specbench.execution.transport import Event, EventSplitter
from specbench.records import RequestRecord, TokenSource
from specbench.units import Second

DONE = b"[DONE]"
PIECE_BYTES = 1 << 16
"""Of a body, split into events at a time."""


class Answer(Struct, kw_only=True):
    """The events of one response, as far as they could be read."""

    facts: list[tuple[Second, ChunkFacts]] = []
    done: bool = False
    """`[DONE]` was seen."""
    garbage_line_count: int = 0
    """Lines that belong to no server-sent event."""
    error: str | None = None


class Decoding:
    """Reads an answer's events a few at a time, so that whoever has a request to send need not wait for all of them."""

    def __init__(self, seen: Exchange, reader: EventReader) -> None:
        self.answer = Answer()
        self._reader = reader
        self._events = self._split(seen)

    def advance(self, event_count: int) -> bool:
        """Decodes so many events; False when there are no more."""
        for _ in range(event_count):
            event = next(self._events, None)
            if event is None or not self._take(event):
                self._events = iter(())
                return False
        return True

    def whole(self) -> Answer:
        """The answer with all that was left."""
        while self.advance(1024):
            pass
        return self.answer

    def _split(self, seen: Exchange) -> Iterator[Event]:
        if seen.arrivals is None or seen.status_code != 200:
            return
        plain = seen.blocks.plain_events(seen.arrivals) if seen.blocks is not None and seen.error is None else None
        if plain is not None:
            yield from plain
            return
        body = seen.joined()
        splitter = EventSplitter(seen.arrivals)
        for begin in range(0, len(body), PIECE_BYTES):
            try:
                events = splitter.feed(body[begin : begin + PIECE_BYTES])
            except ValueError as error:
                self.answer.error = str(error)
                return
            self.answer.garbage_line_count = splitter.garbage_line_count
            yield from events
        yield from splitter.end() if seen.error is None else ()
        self.answer.garbage_line_count = splitter.garbage_line_count

    def _take(self, event: Event) -> bool:
        """False at `[DONE]`, at an error, or at an event that can't be read; what came before is kept."""
        answer = self.answer
        if event.data.strip() == DONE:
            answer.done = True
            return False
        if event.name == b"error":
            answer.error = f"the server reported: {error_sentence(event.data)}"
            return False
        try:
            facts = self._reader.read(event.data)
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else error
            answer.error = f"an event that can't be read: {why}: {event.data[:80]!r}"
            return False
        answer.facts.append((event.at_s, facts))
        if facts.error:
            answer.error = f"the server reported: {' '.join(facts.error.split())[:300]}"
        return not facts.error


def record_of(
    blank: RequestRecord, seen: Exchange, answer: Answer, stated_source: TokenSource | None, zero_s: Second
) -> RequestRecord:
    """`blank` names the request and its due time; `stated_source` is set where counts don't come from `usage`;
    `zero_s` is the clock's reading when the trial began."""
    chunks = [(at_s, facts) for at_s, facts in answer.facts if facts.carries_tokens]
    counts = chunk_counts([facts for _, facts in chunks])
    last = last_counts([facts for _, facts in answer.facts])
    if not tells_all([facts for _, facts in answer.facts]):
        last.pop("output_tokens", None)
    return structs.replace(
        blank,
        sent_s=seen.sent_s - zero_s,
        done_s=seen.done_s - zero_s,
        clock=seen.arrivals.clock if seen.arrivals else "loop",
        stepped=bool(seen.arrivals and seen.arrivals.stepped),
        chunk_s=tuple(at_s - zero_s for at_s, _ in chunks),
        chunk_tokens=counts,
        token_source=token_source(answer.facts, counts, stated_source) if "output_tokens" in last else "none",
        output_text="".join(facts.text for _, facts in answer.facts),
        status_code=seen.status_code,
        error=seen.error or answer.error or _unfinished(answer, seen) or _falling(chunks),
        **last,
    )


def _falling(chunks: Sequence[tuple[Second, ChunkFacts]]) -> str | None:
    known = [facts.output_tokens for _, facts in chunks if facts.output_tokens is not None]
    fall = next(((one, after) for one, after in itertools.pairwise(known) if after < one), None)
    return f"the server's count of tokens falls from {fall[0]} to {fall[1]}" if fall else None


def _unfinished(answer: Answer, seen: Exchange) -> str | None:
    if not answer.facts:
        body = seen.joined()
        words = error_sentence(body[:PIECE_BYTES]) if body.strip() and not answer.done else ""
        return f"the answer held no events{f': {words}' if words else ''}"
    if answer.garbage_line_count:
        return f"the answer holds lines that are no server-sent event ({answer.garbage_line_count})"
    if answer.done or any(facts.finish_reason for _, facts in answer.facts):
        brought = any(facts.carries_tokens or facts.output_tokens is not None for _, facts in answer.facts)
        return None if brought else "the answer ended without a token"
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


def tells_all(facts: Sequence[ChunkFacts]) -> bool:
    """Whether the last count came with the last tokens, or after them: one that others follow is no total."""
    for one in reversed(facts):
        if one.output_tokens is not None:
            return True
        if one.carries_tokens:
            return False
    return False


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
