"""Where the ranks of a server over several nodes meet, as torch.distributed would have them: at `--dist-init-addr`.

A rank that is not the first serves nothing; it ends when the first one does.
"""

import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from specbench import clock

LIMIT_S: Final = 60.0
AGAIN_S: Final = 0.05


class Meeting:
    """The connections of one rank, open as long as it lives."""

    def __init__(self, rank: int, connections: tuple[socket.socket, ...] = ()) -> None:
        self.is_first = rank == 0
        self._connections = connections

    def wait(self) -> int:
        """Until the first rank is gone. Returns the exit code."""
        while self._connections[0].recv(64):
            continue
        sys.stderr.write("SIMULATED: rank 0 is gone\n")
        return 1

    def close(self) -> None:
        """Parts from the others."""
        for connection in self._connections:
            connection.close()


def meet(resolved: Mapping[str, Any]) -> Meeting:
    """At once on one node. Raises OSError when not all ranks came in time."""
    nodes_count, rank = resolved.get("nnodes") or 1, resolved.get("node_rank") or 0
    if nodes_count < 2:
        return Meeting(0)
    host, _, port = str(resolved.get("dist_init_addr")).rpartition(":")
    meeting = Meeting(rank, _welcome((host, int(port)), nodes_count) if rank == 0 else (_join((host, int(port)), rank),))
    sys.stderr.write(f"SIMULATED: rank {rank} of {nodes_count} met the others at {host}:{port}\n")
    sys.stderr.flush()
    return meeting


def _welcome(address: tuple[str, int], nodes_count: int) -> tuple[socket.socket, ...]:
    """One connection from each other rank."""
    found: dict[bytes, socket.socket] = {}
    with socket.create_server(address) as door:
        door.settimeout(LIMIT_S)
        while len(found) < nodes_count - 1:
            connection, _ = door.accept()
            connection.settimeout(LIMIT_S)
            found[connection.recv(64)] = connection
    return tuple(found.values())


def _join(address: tuple[str, int], rank: int) -> socket.socket:
    """As soon as the first rank listens."""
    give_up_s = clock.now_s() + LIMIT_S
    while True:
        try:
            connection = socket.create_connection(address, timeout=LIMIT_S)
        except OSError:
            if clock.now_s() > give_up_s:
                raise
            time.sleep(AGAIN_S)
        else:
            connection.sendall(str(rank).encode())
            connection.settimeout(None)
            return connection
