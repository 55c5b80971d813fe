"""Server-sent events: bytes in, payloads with their arrival out. Pure; a body split anywhere gives the same events."""

from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import Struct

from specbench.execution.transport.arrivals import Arrivals
from specbench.units import Second

_MAX_EVENT_BYTES: Final = 16 << 20
_BOM: Final = b"\xef\xbb\xbf"


class Event(Struct, frozen=True, gc=False):
    """One `data:` event."""

    data: bytes
    """Its data lines, joined by line feeds."""
    at_s: Second
    """Arrival of the last byte of the blank line that ended it."""
    name: bytes = b""
    """The `event:` field; empty when there is none."""


class Blocks(NamedTuple):
    """A body as its parser gave it. `marks[i]` blocks were there after the read stamped `stamps_s[i]`."""

    blocks: list[bytes]
    marks: list[int]

    def joined(self, arrivals: Arrivals) -> bytes:
        """As one, with `arrivals.offsets` filled in."""
        ends = list(accumulate(map(len, self.blocks), initial=0))
        arrivals.offsets.extend(map(ends.__getitem__, self.marks))
        return b"".join(self.blocks)

    def plain_events(self, arrivals: Arrivals) -> list[Event] | None:
        """The events, where each block is one `data: ` line and its blank line, as engines send them: nothing is joined and
        split again. None for any other body."""
        if max(map(len, self.blocks), default=0) > _MAX_EVENT_BYTES:
            return None  # the splitter refuses it
        events: list[Event] = []
        read, marks, stamps_s = 0, self.marks, arrivals.stamps_s
        for place, block in enumerate(self.blocks):
            if block[:6] != b"data: " or block[-2:] != b"\n\n" or block.count(b"\n") != 2 or b"\r" in block:
                return None
            while marks[read] <= place:
                read += 1
            events.append(Event(block[6:-2], stamps_s[read]))
        return events


class EventSplitter:
    """Splits a body into events as it comes. Lines end in LF, CRLF or CR; comments and events without data are no events."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._stamps_s = arrivals.stamps_s
        self._offsets = arrivals.offsets
        self._read_index = 0
        self._rest = b""
        """The bytes after the last blank line seen."""
        self._rest_offset = 0
        self._begun = False
        self.comment_count = 0
        self.garbage_line_count = 0
        """Lines that are no field of the format: not SSE, or a broken stream."""

    @property
    def unfinished(self) -> bytes:
        """What follows the last whole event, comments apart: empty unless the body was cut off."""
        return b"\n".join(line for line in self._rest.splitlines() if line and not line.startswith(b":"))

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete. Raises ValueError when one event grows beyond 16 MiB."""
        rest = self._rest + data
        if not self._begun:
            if len(rest) < len(_BOM) and _BOM.startswith(rest):
                self._rest = rest
                return []
            self._begun = True
            if rest.startswith(_BOM):
                rest, self._rest_offset = rest[len(_BOM) :], len(_BOM)
        events = self._fast(rest) if b"\r" not in rest else self._slow(rest)
        if len(self._rest) > _MAX_EVENT_BYTES:
            raise ValueError(f"One event is longer than {_MAX_EVENT_BYTES} bytes.")
        return events

    def end(self) -> list[Event]:
        """The last event of a body that ended well without a blank line behind it."""
        rest, self._rest = self._rest, b""
        events: list[Event] = []
        if rest:
            self._block(rest.splitlines(), self._rest_offset + len(rest), events)
            self._rest_offset += len(rest)
        return events

    def _fast(self, text: bytes) -> list[Event]:
        """Line feeds only: blank lines separate the events."""
        whole, blank, self._rest = text.rpartition(b"\n\n")
        if not blank:
            return []
        if whole.startswith(b"data: "):
            payloads = whole[6:].split(b"\n\ndata: ")
            if whole.count(b"\n") == 2 * (len(payloads) - 1):
                return self._plain(payloads)
        events: list[Event] = []
        for block in whole.split(b"\n\n"):
            self._rest_offset += len(block) + 2
            self._block(block.split(b"\n"), self._rest_offset, events)
        return events

    def _plain(self, payloads: list[bytes]) -> list[Event]:
        """Events of one `data: ` line each, as every engine sends them: the way that all answers of a load go."""
        events: list[Event] = []
        index, offsets, stamps_s, end_offset = self._read_index, self._offsets, self._stamps_s, self._rest_offset
        for payload in payloads:
            end_offset += len(payload) + 8
            while offsets[index] < end_offset:  # as in `_at_s`, in place
                index += 1
            events.append(Event(payload, stamps_s[index]))
        self._rest_offset, self._read_index = end_offset, index
        return events

    def _slow(self, text: bytes) -> list[Event]:
        """Any line end. A CR at the very end waits for the byte after it, which may be its LF."""
        events: list[Event] = []
        lines: list[bytes] = []
        position = begin = 0
        for line in text.splitlines(keepends=True):
            position += len(line)
            if not line.endswith((b"\n", b"\r")) or (line.endswith(b"\r") and position == len(text)):
                break
            bare = line.rstrip(b"\r\n")
            if bare:
                lines.append(bare)
                continue
            self._block(lines, self._rest_offset + position, events)
            lines, begin = [], position
        self._rest = text[begin:]
        self._rest_offset += begin
        return events

    def _block(self, lines: list[bytes], end_offset: int, events: list[Event]) -> None:
        data: list[bytes] = []
        name = b""
        for line in filter(None, lines):
            field, colon, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
            elif colon and not field:
                self.comment_count += 1
            elif field not in (b"id", b"retry"):
                self.garbage_line_count += 1
        if data:
            events.append(Event(b"\n".join(data), self._at_s(end_offset), name))

    def _at_s(self, end_offset: int) -> Second:
        """Arrival of an event's last byte. Events end in order, so the search goes on where it stopped."""
        index = self._read_index
        while self._offsets[index] < end_offset:
            index += 1
        self._read_index = index
        return self._stamps_s[index]
