"""Numbers in a text, many at once: by words of eight bytes, each its own numpy element."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

WORD_BYTES: Final = 8
MOST_VALUE_DIGITS: Final = WORD_BYTES - 1
"""Of a number whose value is asked for."""
MOST_DIGITS: Final = 2 * MOST_VALUE_DIGITS
"""Of any number that is passed over."""
NEAR_BYTES: Final = 1 << 18
"""So much stays in a core's own cache between two passes over it."""
DOUBLE_BITS: Final = 52
"""Behind a double's leading one; above them stands its exponent, and this much:"""
DOUBLE_BIAS: Final = 1023
ZEROS: Final = np.uint64(0x3030303030303030)
OVER_NINE: Final = np.uint64(0x7676767676767676)
HIGH_BITS: Final = np.uint64(0x8080808080808080)
LAST_HIGH_BIT: Final = np.uint64(0x8000000000000000)
PAIRS: Final = ((0x0F0F0F0F0F0F0F0F, 2561, 8), (0x00FF00FF00FF00FF, 6553601, 16), (0x0000FFFF0000FFFF, 42949672960001, 32))
"""Neighbours are put together: digits, then numbers of two digits, then of four (mask, factor, shift)."""

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Places = NDArray[np.intp]
Floats = NDArray[np.float64]


def items(text: Bytes, size_bytes: int) -> NDArray[np.void]:
    """At each place of the text, the bytes that begin there."""
    kind = f"V{size_bytes}"
    return np.ndarray((max(0, len(text) - size_bytes + 1),), kind, text, strides=(1,))


def words_at(text: Bytes, places: Places) -> Words:
    """The eight bytes that begin at each place."""
    words: Words = items(text, WORD_BYTES)[places].view("<u8")
    return words


def digits_of(words: Words) -> tuple[Words, Places]:
    """The words with their first digits as values from 0 to 9, and how many these are, `MOST_VALUE_DIGITS` at most."""
    digits = words ^ ZEROS
    others = digits + OVER_NINE
    others |= digits
    others &= HIGH_BITS
    others |= LAST_HIGH_BIT
    others &= -others  # the lowest one alone
    widths = others.astype(np.float64).view(np.int64)
    widths >>= DOUBLE_BITS + 3  # eight bits a byte
    widths -= (DOUBLE_BIAS + 1) >> 3
    return digits, widths


def more_digits(text: Bytes, places: Places, widths: Places) -> None:
    """Counts on, up to `MOST_DIGITS`, where `digits_of` found as many as it can."""
    more = np.flatnonzero(widths == MOST_VALUE_DIGITS)
    if len(more):
        widths[more] += digits_of(words_at(text, places[more] + MOST_VALUE_DIGITS))[1]


def values_of(digits: Words, widths: Places) -> Floats:
    """The numbers that so many first digits make, 1 to `MOST_VALUE_DIGITS` of them."""
    values = digits << ((WORD_BYTES - widths) << 3).astype(np.uint64)
    for mask, factor, shift in PAIRS:
        values &= np.uint64(mask)
        values *= np.uint64(factor)
        values >>= np.uint64(shift)
    return values.astype(np.float64)


def line_starts(text: Bytes) -> NDArray[np.int32]:
    """Where lines begin, and where the next text's first line would."""
    bits = [
        np.packbits(text[at : at + NEAR_BYTES] == ord("\n"), bitorder="little") for at in range(0, len(text), NEAR_BYTES)
    ]
    ends = _ones(np.concatenate((*bits, np.zeros(0, np.uint8))))
    is_cut = bool(len(text)) and text[-1] != ord("\n")
    starts = np.zeros(len(ends) + 1 + is_cut, np.int32)
    starts[1 : len(ends) + 1] = ends + 1
    if is_cut:
        starts[-1] = len(text) + 1
    return starts


def _ones(bits: Bytes) -> NDArray[np.int64]:
    """The places of ones among many zeros, 64 of them at a time; `np.flatnonzero` looks at each."""
    words = np.concatenate((bits, np.zeros(-len(bits) % WORD_BYTES, np.uint8))).view("<u8")
    places = np.flatnonzero(words)
    words, found = words[places], [np.zeros(0, np.int64)]
    places *= 64
    while len(words):
        rest = words & (words - np.uint64(1))
        found.append(places + _exponents(words ^ rest))
        words, places = rest[rest != 0], places[rest != 0]
    return np.sort(np.concatenate(found)) if len(found) > 2 else found[-1]


def _exponents(powers: Words) -> NDArray[np.int64]:
    """Of powers of two, as a double holds them."""
    found: NDArray[np.int64] = (powers.astype(np.float64).view(np.int64) >> DOUBLE_BITS) - DOUBLE_BIAS
    return found
