"""A log that is deleted, replaced or emptied while it is read."""

from pathlib import Path

import pytest

from specbench.execution.logfile import LogFile


class Reader:
    def __init__(self, path: Path) -> None:
        self.told: list[str] = []
        self.log = LogFile(path, 0, self.told.append)

    def all(self) -> bytes:
        read = b""
        while piece := self.log.read(4):
            read += piece
        return read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


def test_a_log_that_comes_late_and_grows(path: Path) -> None:
    reader = Reader(path)
    assert reader.all() == b""
    path.write_bytes(b"one\ntwo\n")
    assert reader.all() == b"one\ntwo\n"
    with path.open("ab") as file:
        file.write(b"three\n")
    assert reader.all() == b"three\n"
    assert reader.told == []
    reader.log.close()


def test_a_deleted_log_is_read_on_and_written_back(path: Path) -> None:
    with path.open("ab", buffering=0) as server:
        reader = Reader(path)
        server.write(b"one\n")
        assert reader.all() == b"one\n"
        path.unlink()
        server.write(b"two\n")
        assert reader.all() == b"two\n"
        assert reader.all() == b""
        assert reader.told == ["deleted"]
        reader.log.restore()
        assert path.read_bytes() == b"one\ntwo\n"
        assert reader.all() == b"", "its own copy is not read again"
        reader.log.restore()
    reader.log.close()


def test_a_replaced_log_is_read_to_its_end_and_then_the_new_one(path: Path) -> None:
    with path.open("ab", buffering=0) as server:
        reader = Reader(path)
        server.write(b"one\n")
        assert reader.all() == b"one\n"
        server.write(b"two\n")
        path.rename(path.with_suffix(".1"))
        path.write_bytes(b"new\n")
        assert reader.all() == b"two\nnew\n"
    assert reader.told == ["replaced"]
    reader.log.restore()
    assert path.read_bytes() == b"new\n"
    reader.log.close()


def test_an_emptied_log_is_read_from_its_begin(path: Path) -> None:
    with path.open("ab", buffering=0) as server:
        reader = Reader(path)
        server.write(b"a long line\n")
        assert reader.all() == b"a long line\n"
        server.truncate(0)
        server.write(b"new\n")
        assert reader.all() == b"new\n"
    assert reader.told == ["emptied"]
    reader.log.close()
