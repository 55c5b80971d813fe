"""Numbers and lines found eight bytes at a time are those that Python finds."""

import itertools
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specbench.dialects.numbers import digits_of, line_starts, more_digits, values_of, words_at

DIGITS = "0123456789"


@given(st.lists(st.tuples(st.text(DIGITS, max_size=20), st.characters(max_codepoint=255)), min_size=1, max_size=30))
def test_digits_are_counted_and_valued(pieces: list[tuple[str, str]]) -> None:
    raw = b"".join(digits.encode() + other.encode("latin-1") for digits, other in pieces)
    text = np.frombuffer(raw + b"x" * 16, np.uint8)
    places = np.arange(len(raw))
    runs = [len(found.group()) for at in places.tolist() if (found := re.compile(rb"\d*").match(raw, at))]
    words, counts = digits_of(words_at(text, places))
    assert counts.tolist() == [min(run, 7) for run in runs]
    widths = counts.copy()
    more_digits(text, places, widths)
    assert widths.tolist() == [min(run, 14) for run in runs]
    some = np.flatnonzero(counts)
    values = [float(raw[at : at + count]) for at, count in zip(some.tolist(), counts[some].tolist(), strict=True)]
    assert values_of(words[some], counts[some]).tolist() == values


@given(st.binary(max_size=400) | st.text("ab\n", max_size=400).map(str.encode))
def test_lines_begin_where_they_begin(raw: bytes) -> None:
    lines = raw.split(b"\n")
    starts = line_starts(np.frombuffer(raw, np.uint8)).tolist()
    assert starts[0] == 0
    found = [raw[start : end - 1] for start, end in itertools.pairwise(starts)]
    assert found == (lines if lines[-1] else lines[:-1])
