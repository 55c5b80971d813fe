"""Text deltas of token ids: nothing is cut, nothing is lost, nothing comes twice."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from specbench.embedded.openvino_text import HALF, IncrementalText


def decode(ids: Sequence[int]) -> str:
    """Byte-level, as SmolLM2's tokenizer at its worst: one byte a token."""
    return bytes(ids).decode("utf-8", errors="replace")


@given(st.text().filter(lambda text: HALF not in text), st.lists(st.integers(1, 6)))
def test_deltas_joined_are_the_text(text: str, sizes: list[int]) -> None:
    ids, told, streamed = list(text.encode()), "", IncrementalText(decode)
    for size in sizes:
        delta = streamed.add(ids[:size])
        assert HALF not in delta
        told, ids = told + delta, ids[size:]
    assert told + streamed.add(ids, last=True) == text


def test_a_character_waits_until_it_is_whole() -> None:
    streamed = IncrementalText(decode)
    first, *rest = "é!".encode()
    assert streamed.add([first]) == ""
    assert streamed.add(rest) == "é!"


def test_the_end_gives_what_never_became_whole() -> None:
    streamed = IncrementalText(decode)
    assert streamed.add([ord("a")]) == "a"
    assert streamed.add(["é".encode()[0]], last=True) == HALF


def test_a_leading_space_that_only_a_first_token_loses_is_kept() -> None:
    def sentencepiece(ids: Sequence[int]) -> str:
        return "".join(chr(one) for one in ids).removeprefix(" ")

    streamed = IncrementalText(sentencepiece)
    assert [streamed.add([ord("a")]), streamed.add([ord(" ")]), streamed.add([ord("b")])] == ["a", " ", "b"]
