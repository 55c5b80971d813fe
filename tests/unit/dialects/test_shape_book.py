"""Shapes are learned from lines that come again, hold for any width, and never for what the grammar reads otherwise."""

import json
import random
import re
from collections.abc import Callable

import numpy as np
import pytest

from specbench.dialects import LogLine
from specbench.dialects.numbers import line_starts
from specbench.dialects.sglang_causes import CAUSES
from specbench.dialects.sglang_events import SHAPES
from specbench.dialects.sglang_log import parse_line
from specbench.dialects.shape_book import CHATTER_LINES, FREE_WORK, MOST_SHAPES, TOLD_NUMBERS, ShapeBook
from specbench.dialects.shape_tree import BEHIND_BYTES
from tests.unit.dialects.test_blocks import agree, blocks_of
from tests.unit.dialects.test_collectors import WRAPS
from tests.unit.log_bed import DECODE, made_log

NEVER_LEARNED = ("journald json, bytes", "fluent-bit")
"""The text stands there as numbers; a JSON number may not begin with a zero, so that not all digits do."""
PREFIX = "[2026-11-01 10:00:00 TP0] "


def decode(running: int = 1, token: int = 5, tps: float = 99.0, graph: bool = True, rank: str = " TP0") -> str:
    return DECODE.format(1, 2, rank, running, token, 1, 2.0, 0.5, graph, tps, 0)


def taught(*lines: str, grammar: Callable[[str], LogLine] = parse_line) -> ShapeBook:
    """After looking at each of these twice."""
    book = ShapeBook(grammar)
    for line in [*lines, *lines]:
        book.look(line.encode(), grammar(line))
    return book


def matched(book: ShapeBook, *lines: str) -> list[bool]:
    """By line, whether its shape is known."""
    raw = "".join(line + "\n" for line in lines).encode()
    found = [False] * len(lines)
    text = np.frombuffer(raw + bytes(BEHIND_BYTES), np.uint8)
    for match in book.match(text, line_starts(text[: len(raw)]), np.arange(len(lines))):
        for line in match.lines.tolist():
            found[line] = True
    return found


def test_what_comes_once_is_not_learned() -> None:
    book = ShapeBook(parse_line)
    assert not book.look(decode().encode(), parse_line(decode()))
    assert matched(book, decode()) == [False]
    assert book.look(decode().encode(), parse_line(decode()))
    assert matched(book, decode()) == [True]


def test_a_number_of_two_widths_may_have_any() -> None:
    book = taught(decode())
    assert matched(book, decode(tps=1.0), decode(running=12)) == [False, False]
    book = taught(decode(), decode(running=12, tps=1.0))
    assert len(book.shapes) == 1
    assert matched(book, decode(running=4096, tps=12345.67), decode(running=3, tps=7.0)) == [True, True]
    assert matched(book, decode(token=12)) == [False]


def test_widths_hold_for_all_shapes_that_begin_alike() -> None:
    book = taught(decode(), decode(graph=False), decode(running=12))
    assert len(book.shapes) == 2
    assert matched(book, decode(running=123, graph=False)) == [True]


def test_a_value_of_more_digits_than_a_word_holds_is_left_to_the_grammar() -> None:
    book = taught(decode(), decode(running=12, token=12))
    assert matched(book, decode(running=1234567), decode(running=12345678)) == [True, False]
    assert matched(book, decode(token=12345678901234), decode(token=123456789012345)) == [True, False]


def test_what_the_grammar_reads_by_its_digits_is_not_learned() -> None:
    for text in ("[Errno 97] error while attempting to bind", "max_total_num_tokens=12, chunked_prefill_size=8192"):
        assert not taught(PREFIX + text).shapes
    cut = decode()[:-20]  # ends inside the throughput
    assert not taught(cut).shapes


def test_widths_that_the_grammar_minds_are_left_to_it() -> None:
    def read(line: str) -> LogLine:
        running, token = (re.search(rf"#{name}: (\d+),", line) for name in ("running-req", "token"))
        minds = (running and len(running[1]) > 4) or (token and len(token[1]) == 2)
        return LogLine(kind="unrecognised", text=line) if minds else parse_line(line)

    book = taught(decode(), decode(running=12), decode(token=123), decode(tps=1234.0), grammar=read)
    assert matched(book, decode(running=1234), decode(running=12345)) == [True, False]
    assert matched(book, decode(token=123), decode(token=12), decode(tps=123456.0)) == [False, False, True]


def test_ranks_of_two_digits() -> None:
    book = taught(decode(rank=" DP7 TP7"), decode(rank=" DP11 TP11"))
    assert matched(book, decode(rank=" DP123456 TP3"), decode(rank=" DP1234567 TP3")) == [True, False]


@pytest.mark.parametrize("name", ["request", "obj"])
def test_an_echo_is_known_by_its_beginning(name: str) -> None:
    lines = [f"[2026-11-01 10:00:0{at}] Receive: {name}=GenerateReqInput(text='{'word ' * at}')" for at in range(3)]
    book = taught(*lines)
    assert len(book.shapes) == 1
    tail = "[2026-11-01 10:00:00 TP0] " + decode()
    assert matched(book, lines[0] + "é" * 3000, f"[2026-11-01 10:00:00] Receive: {name}={tail}") == [True, True]
    assert matched(book, lines[0] + "\r" + decode(), lines[0] + "\r", "[2026-11-01 10:00:00] Receive") == [False] * 3


def test_chatter_is_learned_when_there_is_much_of_it_and_leaves_room() -> None:
    book = ShapeBook(parse_line)
    words = [chr(97 + at % 26) * (at // 26 + 1) for at in range(400)]
    for word in words:
        for at in range(CHATTER_LINES):
            line = f"{PREFIX}something about {word} {at}"
            learned = book.look(line.encode(), parse_line(line))
            assert not learned or at == CHATTER_LINES - 1
    count = len(book.shapes)
    assert 64 < count < MOST_SHAPES
    for line in [decode(), decode()]:
        book.look(line.encode(), parse_line(line))
    assert len(book.shapes) == count + 1


@pytest.mark.parametrize("name", WRAPS)
def test_collectors_lines_are_read_as_the_grammar_reads_them(name: str) -> None:
    lines = [WRAPS[name](line, at).replace("\n", " ") for at, line in enumerate(made_log(3, 1200))]
    by_numpy = agree(lines, blocks_of(lines, 2))
    assert by_numpy > 800 or name in NEVER_LEARNED


@pytest.mark.parametrize("seed", range(8))
def test_numbers_of_all_widths(seed: int) -> None:
    rng = random.Random(seed)
    rank = rng.choice(("", " TP0", " DP{} TP{}"))
    lines = []
    for _ in range(1500):
        own = rank.format(rng.randrange(12), rng.randrange(12))
        running, token = 10 ** rng.randrange(5) - rng.randrange(2), rng.randrange(10 ** rng.randrange(1, 10))
        lines.append(decode(running, token, rng.random() * 10 ** rng.randrange(6), rng.random() < 0.8, own))
        if rng.random() < 0.1:
            cut = rng.randrange(len(lines[-1]))
            lines.append(lines[-1][:cut] + rng.choice(("", "7", "x", lines[-2 % len(lines)])))
    assert agree(lines, blocks_of(lines, 3)) > 1100


def test_lines_that_all_end_inside_a_number() -> None:
    book = taught(decode(), decode(running=12))
    assert matched(book, decode(running=123456789), decode(running=12345678)) == [False, False]


def test_text_told_by_numbers_has_no_shape() -> None:
    def as_numbers(text: str) -> str:
        return json.dumps({"MESSAGE": list(text.encode())})

    said = PREFIX + "Nothing of note is said in this line, none."
    fatal = PREFIX + "Scheduler hit an exception: Traceback (most "
    book = ShapeBook(parse_line)
    for line in [as_numbers(said), as_numbers(" " * len(said))] * CHATTER_LINES:
        assert not book.look(line.encode(), parse_line(line))
    assert matched(book, as_numbers(fatal[: len(said)])) == [False]


def test_decimals_keep_their_width() -> None:
    whole, short = decode(tps=98.0), decode().replace("99.00,", "99.5,")
    assert matched(taught(whole, whole, short), whole, short) == [True, False]
    first_was_damaged = taught(short, short, whole, whole)
    assert matched(first_was_damaged, whole, short, decode(tps=1.0)) == [True, True, False]


def test_a_number_that_the_grammar_names_is_not_read_as_talk() -> None:
    line = "ERROR:    [Errno {}] error while attempting to bind on address ('0.0.0.0', 30000): retry"
    talk = [line.format(11 + at % 3) for at in range(2 * CHATTER_LINES)]
    (block,) = blocks_of([*talk, line.format(98)], 1)
    assert dict(block.slow)[len(talk)].kind == "fatal"


def test_numbers_named_by_the_grammar_are_probed() -> None:
    patterns = [one.pattern.pattern for one in (*SHAPES, *CAUSES)]
    literal = {
        number
        for one in patterns
        for number in re.findall(r"(?<=\[Errno )\d+|(?<=topk = )\d+|(?<=> )\d+|\d+(?= Client)", one)
    }
    assert literal == {number.decode() for number in TOLD_NUMBERS}


def test_what_never_fits_is_looked_at_ever_more_rarely() -> None:
    """Each comes twice, and other digits in it make another line of it: each would cost a proof."""
    asked = 0

    def grammar(line: str) -> LogLine:
        nonlocal asked
        asked += 1
        return parse_line(line)

    book, count = ShapeBook(grammar), 3 * FREE_WORK
    for at in range(count):
        host = "".join(chr(97 + int(digit)) for digit in str(at // 2))
        line = f"{host} | {decode()}".replace("#running-req: 1,", "#running-req: 1.5,")
        book.look(line.encode(), parse_line(line))
    assert not book.shapes
    assert asked < count // 4
    for line in [PREFIX + "talk"] * CHATTER_LINES:  # has a budget of its own
        learned = book.look(line.encode(), parse_line(line))
    assert learned
