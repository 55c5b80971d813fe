"""The ranks of a simulated server over several nodes."""

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from specbench.embedded import meeting
from specbench.embedded.meeting import meet


def told(rank: int, port: int, nodes_count: int = 2) -> dict[str, Any]:
    return {"nnodes": nodes_count, "node_rank": rank, "dist_init_addr": f"127.0.0.1:{port}"}


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        found: int = door.getsockname()[1]
    return found


def test_one_node_meets_nobody() -> None:
    assert meet({}).is_first
    assert meet({"nnodes": 1, "node_rank": 0}).is_first


def test_ranks_meet_and_part(port: int) -> None:
    with ThreadPoolExecutor(3) as pool:
        later = [pool.submit(meet, told(rank, port, 3)) for rank in (2, 1)]
        first = meet(told(0, port, 3))
        others = [one.result(30) for one in later]
        assert [first.is_first, *(one.is_first for one in others)] == [True, False, False]
        waiting = [pool.submit(one.wait) for one in others]
        first.close()
        assert [one.result(30) for one in waiting] == [1, 1]
        for one in others:
            one.close()


def test_a_rank_that_never_comes(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "LIMIT_S", 0.05)
    with pytest.raises(OSError):  # noqa: PT011 (a time limit here, a refusal there)
        meet(told(0, port))
    with pytest.raises(OSError):  # noqa: PT011
        meet(told(1, port))
