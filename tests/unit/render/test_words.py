"""What a terminal would obey, or show in another order than it is written, is not in what is printed."""

import pytest

from specbench.render.words import clean


@pytest.mark.parametrize(
    "trick",
    [
        "\x1b[31m",
        "\x1b[2J\x1b[1;1H",
        "\x1b]0;title\x07",
        "\x1b]8;;http://evil\x1b\\",
        "\x1bc",
        "\x1bM",
        "\x07\x08\x7f",
        "\u202e\u2066\u200f\u061c",
        "\ufeff\u200b\u180e\ufff9",
        "\U000e0041\U000e007f",
        "\ud800",
    ],
)
def test_tricks_are_stripped(trick: str) -> None:
    assert clean(f"a{trick}b") == "ab"


@pytest.mark.parametrize("trick", ["\x1bP1;2q#0\x1b\\", "\x9b31m", "\x1b[" + "9" * 500, "\x1b"])
def test_of_what_is_longer_only_harmless_letters_stay(trick: str) -> None:
    assert clean(trick).isprintable()


def test_lines_become_one() -> None:
    assert clean("a\r\nb\tc\n\nd") == "a b c d"
    assert clean("×, –, Σ and 東京 stay") == "×, –, Σ and 東京 stay"
