"""From blocks of SGLang's log to columns: what numpy read of decode and prefill lines."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from specbench.analysis.acceptance import LogReader
from specbench.analysis.log_rows import RADIX, Idle, Rows
from specbench.dialects import LogLine
from specbench.dialects.blocks import Block, BlockReader
from specbench.dialects.shapes import COLUMN_COUNT

SIDE_BY_SIDE: Final = 2
"""Blocks read at once; numpy lets another thread run meanwhile."""


def read_side_by_side(
    blocks: Iterable[tuple[memoryview, int]], parse_line: Callable[[str], LogLine], count: int = SIDE_BY_SIDE
) -> Iterator[tuple[Block, Rows]]:
    """In order; line numbers of the rows count within the block. A block must stay as it is while two more are read."""
    readers = [BlockReader(parse_line) for _ in range(count)]
    waiting: deque[Future[tuple[Block, Rows]]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for place, (text, size_bytes) in enumerate(blocks):
            waiting.append(pool.submit(_read, readers[place % count], text, size_bytes))
            if len(waiting) == count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _read(reader: BlockReader, text: memoryview, size_bytes: int) -> tuple[Block, Rows]:
    block = reader.read(text, size_bytes)
    return block, _rows(block)


def _rows(block: Block) -> Rows:
    """Decode lines that numpy read. What a row says is its text from its own clock on."""
    places = np.flatnonzero(block.of_kind("decode"))
    running, length, rate, tps, dp, pp, tp = (block.column(number, places) for number in range(COLUMN_COUNT))

    def said(place: int) -> bytes:
        index = int(places[place])
        stamp = block.shapes[block.shape_index[index]].ts
        return block.line(index)[stamp.start if stamp else 0 :]

    return Rows(
        line=places + 1,
        stream=_codes(dp, pp),
        writer=np.nan_to_num(tp).astype(np.int64),
        running=running,
        length=length,
        rate=rate,
        tps=tps,
        graph=block.graphs(places),
        said=said,
    )


def take_prefills(block: Block, lines_before: int, reader: LogReader) -> list[Idle]:
    """Adds up the prompts' tokens; gives the prefills that found nothing running."""
    places = np.flatnonzero(block.of_kind("prefill"))
    running, cached, new = (block.column(number, places) for number in range(3))
    reader.prefill(int(np.nansum(cached)), int(np.nansum(new)))
    idle = places[running == 0]
    codes = _codes(*(block.column(number, idle) for number in (4, 5))).tolist()
    return [Idle(line, code) for line, code in zip((idle + lines_before + 1).tolist(), codes, strict=True)]


def _codes(dp: NDArray[np.float64], pp: NDArray[np.float64]) -> NDArray[np.int64]:
    """Streams as whole numbers, 0 where no rank is printed."""
    if np.isnan(dp).all() and np.isnan(pp).all():
        return np.zeros(len(dp), np.int64)
    return ((np.nan_to_num(dp, nan=-1.0) + 1) * RADIX + np.nan_to_num(pp, nan=-1.0) + 1).astype(np.int64)
