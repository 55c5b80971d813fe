"""From blocks of SGLang's log to rows: what numpy read of decode and prefill lines."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from specbench.analysis.acceptance import LogReader
from specbench.analysis.log_rows import RADIX, Idle, Rows
from specbench.dialects.blocks import Block, Figures
from specbench.dialects.shapes import DECODE_COLUMNS, RANKS

RUNNING, LENGTH, RATE, TPS = range(len(DECODE_COLUMNS))
DP, PP, TP = (len(DECODE_COLUMNS) + place for place in range(len(RANKS)))
CACHED, NEW = 1, 2
"""Of a prefill line; `RUNNING` is the first there as well."""


def decode_rows(block: Block, lines_before: int) -> Rows:
    """Decode lines that numpy read. What a row says is its text from its own clock on."""
    read = block.decodes

    def said(place: int) -> bytes:
        return block.after_clock(int(read.lines[place]))

    return Rows(
        line=read.lines + np.int64(lines_before + 1),
        stream=_codes(read),
        writer=_writers(read),
        running=read.column(RUNNING),
        length=read.column(LENGTH),
        rate=read.column(RATE),
        tps=read.column(TPS),
        graph=read.graphs,
        said=said,
    )


def _writers(read: Figures) -> NDArray[np.int64]:
    if TP not in read.columns:
        return np.zeros(len(read.lines), np.int64)
    return np.nan_to_num(read.column(TP)).astype(np.int64)


def take_prefills(block: Block, lines_before: int, reader: LogReader) -> Iterable[Idle]:
    """Adds up the prompts' tokens; gives the prefills that found nothing running."""
    read = block.prefills
    if not len(read.lines):
        return ()
    reader.prefill(int(np.nansum(read.column(CACHED))), int(np.nansum(read.column(NEW))))
    return _idle(read, lines_before)


def _idle(read: Figures, lines_before: int) -> Iterator[Idle]:
    places = np.flatnonzero(read.column(RUNNING) == 0)
    codes = _codes(read)[places].tolist()
    for line, code in zip(read.lines[places].tolist(), codes, strict=True):
        yield Idle(lines_before + 1 + line, code)


def _codes(read: Figures) -> NDArray[np.int64]:
    """Streams as whole numbers, 0 where no rank is printed."""
    if DP not in read.columns and PP not in read.columns:
        return np.zeros(len(read.lines), np.int64)
    dp, pp = (np.nan_to_num(read.column(rank), nan=-1.0) + 1 for rank in (DP, PP))
    return (dp * RADIX + pp).astype(np.int64)
