"""Blocks through a pipe: arrays go as they lie in memory, without a copy on either side."""

import os
import pickle
from multiprocessing.connection import Connection
from typing import Any

import numpy as np


def send(writer: Connection, one: object) -> None:
    """Raises BrokenPipeError when nobody reads."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(one, 5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    writer.send_bytes(pickle.dumps((head, [view.nbytes for view in views])))
    for view in views:
        sent_bytes = 0
        while sent_bytes < view.nbytes:
            sent_bytes += os.write(writer.fileno(), view[sent_bytes:])


def receive(reader: Connection) -> Any:
    """What was sent. Raises EOFError when the other end is gone, also in the middle."""
    head, sizes_bytes = pickle.loads(reader.recv_bytes())
    arrays = [np.empty(size_bytes, np.uint8) for size_bytes in sizes_bytes]
    for array in arrays:
        view, have_bytes = memoryview(array), 0
        while have_bytes < len(view):
            count = os.readv(reader.fileno(), [view[have_bytes:]])
            if not count:
                raise EOFError
            have_bytes += count
    return pickle.loads(head, buffers=arrays)
