"""Blocks say what the grammar says, line for line: over the cases, over logs made here, and over damaged ones."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from specbench.dialects.blocks import Block, BlockReader
from specbench.dialects.sglang_log import parse_line
from specbench.dialects.shapes import COLUMN_COUNT, columns_of
from tests.unit.log_bed import made_log

CASES = sorted((Path(__file__).parents[2] / "data" / "cases").glob("sgl-*.log"))


def blocks_of(lines: list[str], count: int) -> list[Block]:
    """The lines in so many blocks, through one reader that learns on the way."""
    reader, size = BlockReader(parse_line), -(-len(lines) // count)
    texts = ["".join(line + "\n" for line in lines[at : at + size]).encode() for at in range(0, len(lines), size)]
    return [reader.read(memoryview(text), len(text)) for text in texts]


def agree(lines: list[str], blocks: list[Block]) -> int:
    """Asserts that each line is read as the grammar reads it; gives how many numpy read."""
    by_numpy, rest = 0, iter(lines)
    for block in blocks:
        slow, kinds = dict(block.slow), Counter[str]()
        places = {
            int(line): (kind, figures, place)
            for kind, figures in (("decode", block.decodes), ("prefill", block.prefills))
            for place, line in enumerate(figures.lines)
        }
        for index in range(block.line_count):
            read = parse_line(next(rest))
            if index in slow:
                assert slow[index] == read
                assert index not in places
                continue
            by_numpy += 1
            kinds[read.kind] += 1
            assert (index in places) == (read.kind in ("decode", "prefill"))
            assert not read.also
            if index in places:
                kind, figures, place = places[index]
                assert kind == read.kind
                found = np.array([figures.column(number)[place] for number in range(COLUMN_COUNT)])
                assert np.array_equal(found, columns_of(read), equal_nan=True)
                assert block.ts(index) == read.ts
                graph = read.sample.cuda_graph if read.sample is not None else None
                assert figures.graphs[place] == (-1 if graph is None else int(graph))
        assert kinds == block.counts
    assert next(rest, None) is None
    return by_numpy


@pytest.mark.parametrize("seed", range(6))
def test_numpy_reads_what_the_grammar_reads(seed: int) -> None:
    lines = made_log(seed, 3000)
    assert agree(lines, blocks_of(lines, 3)) > 2000


@pytest.mark.parametrize("seed", range(6))
def test_damaged_lines_are_never_taken_for_whole_ones(seed: int) -> None:
    rng = random.Random(seed)
    lines = made_log(seed, 1500)
    damaged = []
    for line in lines:
        text = bytearray(line.encode())
        for _ in range(rng.choice((0, 0, 1, 3))):
            if text:
                text[rng.randrange(len(text))] = rng.choice(b"0123456789:;.,# -azZ{}[]/%|\x00\x7f\xba\xff")
        damaged.append(bytes(text).replace(b"\n", b"").decode("utf-8", "replace")[: rng.choice((400, 400, 90))])
    assert agree(lines + damaged, blocks_of(lines + damaged, 2)) > 1000


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cases_read_three_times_over(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n") * 3
    agree(lines, blocks_of(lines, 1))


def test_an_unended_last_line_is_read() -> None:
    (block,) = blocks_of(["one", "two"], 1)
    text = b"one\ntwo"
    cut = BlockReader(parse_line).read(memoryview(text), len(text))
    assert [cut.line(index) for index in range(2)] == [block.line(index) for index in range(2)] == [b"one", b"two"]
