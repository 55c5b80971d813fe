"""Token ids to text as they come: no character is ever cut in two."""

from collections.abc import Callable, Sequence

HALF = "\ufffd"
"""What a decoder writes for bytes that are no whole character yet."""

Decode = Callable[[Sequence[int]], str]


class IncrementalText:
    """One request's text. The deltas joined together are the text of all ids at once.

    Only the ids since the last whole character are decoded again, with a few before them, because a decoder may treat the
    first token of a sequence in its own way (a leading space).
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._before_index = 0
        """Where the decoding window begins."""
        self._told_index = 0
        """Ids whose text has been given."""

    def add(self, ids: Sequence[int], last: bool = False) -> str:
        """The new text; what can't be a whole character yet waits for more, but for the `last` ids."""
        self._ids.extend(ids)
        told = self._decode(self._ids[self._before_index : self._told_index])
        window = self._decode(self._ids[self._before_index :])
        if not last and (window.endswith(HALF) or len(window) <= len(told)):
            return ""
        self._before_index, self._told_index = self._told_index, len(self._ids)
        return window[len(told) :]
