"""A large log read by several processes: each reads every so many-th piece of the file, this one takes them in order."""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from specbench.dialects.blocks import Block, BlockReader
from specbench.dialects.detect import Engine
from specbench.dialects.readers import DETECT_BYTES, engine_in, reader_for
from specbench.dialects.shape_tree import BEHIND_BYTES
from specbench.dialects.shapes import Stamp

LEAST_BYTES: Final = 32 << 20
"""A smaller log is read before other processes have started."""
PIECE_BYTES: Final = 1 << 22
MOST_PROCESSES: Final = 3
"""More would wait for the one that puts their pieces together."""
LONGEST_LINE_BYTES: Final = 1 << 25
"""A longer line is cut where a piece begins."""
SCAN_BYTES: Final = 1 << 16
M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
KEPT_BYTES: Final = 1 << 26
PIPE_BYTES: Final = 1 << 20
"""The most that Linux gives to any user: so far a process may be ahead."""


class FileText:
    """A piece of an open file, read when it is asked for."""

    def __init__(self, descriptor: int, begin: int) -> None:
        self._descriptor, self._begin = descriptor, begin

    def __getitem__(self, place: slice, /) -> bytes:
        """So many bytes of the piece, less where the file ends before."""
        return os.pread(self._descriptor, place.stop - place.start, self._begin + place.start)


class Sent(NamedTuple):
    """A block on its way, without its text."""

    begin: int
    new_stamps: list[Stamp | None]
    block: Block


def _keep_memory() -> None:
    """What is freed is used for the next piece, not given back: new pages are dear, above all on virtual machines."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def process_count(size_bytes: int) -> int:
    """How many are worth starting for a file of this size; 0 or 1: none."""
    if size_bytes < LEAST_BYTES or not sys.platform.startswith("linux"):
        return 0
    return min(MOST_PROCESSES, len(os.sched_getaffinity(0)))


def engine_at_start(descriptor: int) -> Engine | None:
    """Told by the first lines. Raises OSError."""
    for size_bytes in (SCAN_BYTES, DETECT_BYTES):
        text = os.pread(descriptor, size_bytes, 0)
        if (engine := engine_in(memoryview(text), text.rfind(b"\n") + 1)) is not None:
            return engine
    return None


@contextlib.contextmanager
def read_pieces(descriptor: int, size_bytes: int, count: int) -> Iterator[Iterator[Block]]:
    """SGLang's log, an open file, as blocks, in order, up to `size_bytes`. Raises OSError."""
    _keep_memory()
    context = get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    ends = [end for pipe in pipes for end in pipe]
    works = [partial(_send_all, descriptor, size_bytes, range(own, _pieces(size_bytes), count)) for own in range(count)]
    processes = [
        context.Process(target=_child, args=(work, writer, ends), daemon=True)
        for work, (_, writer) in zip(works, pipes, strict=True)
    ]
    for process in processes:
        process.start()
    for _, writer in pipes:
        writer.close()
    try:
        yield _in_order(descriptor, size_bytes, [reader for reader, _ in pipes])
        if os.fstat(descriptor).st_size < size_bytes:
            sys.stderr.write("the log was cut while it was read; the report covers what was read before\n")
    finally:
        for reader, _ in pipes:
            reader.close()
        for process in processes:
            process.terminate()
            process.join()


def _pieces(size_bytes: int) -> int:
    return -(-size_bytes // PIECE_BYTES)


def _in_order(descriptor: int, size_bytes: int, connections: Sequence[Connection]) -> Iterator[Block]:
    """The pieces of a process that died are read here."""
    stamps: list[list[Stamp | None]] = [[] for _ in connections]
    own: BlockReader | None = None
    for number in range(_pieces(size_bytes)):
        place = number % len(connections)
        try:
            sent = connections[place].recv()
        except (EOFError, OSError):
            own = own or reader_for("sglang")
            sent, known = _read(own, descriptor, size_bytes, number, bytearray()), own.stamps
        else:
            stamps[place] += sent.new_stamps
            known = stamps[place]
        yield sent.block._replace(text=FileText(descriptor, sent.begin), stamps=known)


def _child(work: partial[None], writer: Connection, ends: Sequence[Connection]) -> None:
    """Another's end kept open would hide that its reader is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for end in ends:
        if end is not writer:
            end.close()
    with contextlib.suppress(BrokenPipeError):  # nobody wants the rest
        work(writer)


def _send_all(descriptor: int, size_bytes: int, numbers: range, writer: Connection) -> None:
    from fcntl import F_SETPIPE_SZ, fcntl

    with contextlib.suppress(OSError):  # a smaller pipe is slower, no more
        fcntl(writer.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
    reader, told_count, buffer = reader_for("sglang"), 0, bytearray()
    for number in numbers:
        sent = _read(reader, descriptor, size_bytes, number, buffer)
        writer.send(sent._replace(new_stamps=reader.stamps[told_count:]))
        told_count = len(reader.stamps)


def _read(reader: BlockReader, descriptor: int, size_bytes: int, number: int, buffer: bytearray) -> Sent:
    """The lines that begin in this piece. The buffer grows where it must."""
    begin, end = (_line_start(descriptor, one * PIECE_BYTES, size_bytes) for one in (number, number + 1))
    buffer += bytes(max(0, end - begin + BEHIND_BYTES - len(buffer)))
    with memoryview(buffer) as text:
        got_bytes = os.preadv(descriptor, [text[: end - begin]], begin) if end > begin else 0
        block = reader.read(text, got_bytes)
    return Sent(begin, [], block._replace(text=b"", stamps=[]))


def _line_start(descriptor: int, offset: int, size_bytes: int) -> int:
    """Where the first line at or behind the offset begins."""
    if not 0 < offset < size_bytes:
        return min(offset, size_bytes)
    for place in range(offset - 1, min(size_bytes, offset + LONGEST_LINE_BYTES), SCAN_BYTES):
        found = os.pread(descriptor, SCAN_BYTES, place).find(b"\n")
        if found >= 0:
            return min(place + found + 1, size_bytes)
    return size_bytes if offset + LONGEST_LINE_BYTES >= size_bytes else offset
