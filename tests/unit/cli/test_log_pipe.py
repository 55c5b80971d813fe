"""What goes through the pipe comes out the same, and a sender that dies half-way is noticed."""

import os
from multiprocessing import Pipe
from threading import Thread

import numpy as np
import pytest

from specbench.cli.log_pipe import receive, send


def test_arrays_larger_than_the_pipe_come_out_the_same() -> None:
    reader, writer = Pipe(duplex=False)
    sent = {"large": np.arange(1_000_000.0), "none": np.zeros(0, np.int8), "word": "decode"}
    sender = Thread(target=send, args=(writer, sent))
    sender.start()
    found = receive(reader)
    sender.join()
    assert found["word"] == "decode"
    assert found["none"].dtype == np.int8
    np.testing.assert_array_equal(found["large"], sent["large"])


@pytest.mark.parametrize("kept_bytes", [0, 2, 40, 400, 5000])
def test_a_sender_that_is_gone_half_way_ends_it(kept_bytes: int) -> None:
    whole_reader, whole_writer = Pipe(duplex=False)
    send(whole_writer, np.arange(1000.0))
    whole_writer.close()
    whole = b"".join(iter(lambda: os.read(whole_reader.fileno(), 4096), b""))
    assert len(whole) > 8000
    reader, writer = Pipe(duplex=False)
    os.write(writer.fileno(), whole[:kept_bytes])
    writer.close()
    with pytest.raises((EOFError, OSError)):
        receive(reader)
