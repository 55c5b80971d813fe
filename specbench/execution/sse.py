"""Server-sent events out of network reads. Pure."""

import re
from collections.abc import Iterator, Sequence

from specbench.units import Second

LINE_END = re.compile(rb"\r\n|\n|\r")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseSplitter:
    """Feeds on bytes split anywhere and gives each event's payload when its blank line has arrived."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._first = True

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads of the events that these bytes complete. A CR at the end waits: an LF may follow it."""
        text = self._rest + data
        if self._first and len(text) >= len(BYTE_ORDER_MARK):
            text = text.removeprefix(BYTE_ORDER_MARK)
            self._first = False
        held = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = LINE_END.split(text[: len(text) - len(held)])
        self._rest = rest + held
        return [payload for line in lines for payload in self._take(line)]

    def end(self) -> list[bytes]:
        """The last event of a stream that closed well without a blank line behind it."""
        line, self._rest = self._rest.removesuffix(b"\r"), b""
        return [*self._take(line), *self._take(b"")] if line else self._take(b"")

    def _take(self, line: bytes) -> list[bytes]:
        if not line:
            payload, self._data = self._data, []
            return [b"\n".join(payload)] if payload else []
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return []  # comments, `event:`, `id:` and `retry:` carry no payload


def events(reads: Sequence[tuple[Second, bytes]], closed_well: bool) -> Iterator[tuple[Second, bytes]]:
    """Each event's payload with the time of the read that completed it."""
    splitter = SseSplitter()
    at_s = 0.0
    for at_s, data in reads:
        for payload in splitter.feed(data):
            yield at_s, payload
    if closed_well:
        for payload in splitter.end():
            yield at_s, payload
