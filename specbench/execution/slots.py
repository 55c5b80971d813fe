"""Leases what one server may hold beside its GPUs: ports. `Place` is what a launcher gives a launch."""

import asyncio
import random
import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import psutil
from msgspec.structs import replace

from specbench import clock
from specbench.errors import LaunchError
from specbench.plan import Slot
from specbench.records import Lease
from specbench.suite import Variant

PORTS = range(20000, 30000)
"""Below the kernel's ephemeral range: a server binds minutes after the check, and no outgoing connection may take it."""


@dataclass
class Place:
    """Where one launch runs, as its launcher chose it."""

    gpu_ids: tuple[int, ...] = ()
    """Of each node; empty on a CPU."""
    are_simulated: bool = False
    """The GPUs are, so nobody can be asked about them."""
    nodes: tuple[str, ...] = ()
    """Names of a cluster's nodes, ours first; empty on one machine."""
    address: str = ""
    """Of our node, for the others."""
    gate: asyncio.Semaphore | None = None
    """Taken while the server loads, where others run beside it: loading must not starve."""
    is_packed: bool = False
    """Others may run beside it, so its load comes from client processes of its own."""
    refusal: str | None = None
    """Why it can't be launched at all."""
    neighbours: set[str] = field(default_factory=set)
    """Folders of launches that ran beside it at any time; grows while it runs."""

    @property
    def asked_gpu_ids(self) -> tuple[int, ...]:
        """GPUs that a driver can tell of."""
        return () if self.are_simulated else self.gpu_ids


def port_is_free(host: str, port: int) -> bool:
    """Proved by binding and listening. A port in TIME_WAIT is free: servers bind with SO_REUSEADDR too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
        return True


def listeners(port: int) -> tuple[int, ...]:
    """Processes that listen on a TCP port here, as far as the system tells their ids; 0 stands for another user's."""
    try:
        found = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return ()
    pids = {one.pid or 0 for one in found if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port}
    return tuple(sorted(pids))


def process_words(pid: int) -> str:
    """`process 4711 (nginx)`."""
    try:
        return f"process {pid} ({psutil.Process(pid).name()})" if pid else "a process of another user"
    except psutil.Error:
        return f"process {pid}"


def free_port(host: str, ports: range = PORTS, taken: Collection[int] = ()) -> int:
    """A free port of the range, searched from a random start so that two runs rarely meet. Raises LaunchError."""
    check_host(host)
    start = random.randrange(len(ports))
    for offset in range(len(ports)):
        port = ports[(start + offset) % len(ports)]
        if port not in taken and port_is_free(host, port):
            return port
    if len(ports) == 1:
        raise LaunchError("port_in_use", f"port {ports[0]} on {host} is in use by another process; stop it or give another")
    raise LaunchError("port_in_use", f"no port from {ports[0]} to {ports[-1]} on {host} is free")


def lease(variant: Variant, place: Place, ports: range = PORTS, leased: set[int] | None = None) -> Slot:
    """The place's GPUs, and ports that are free now and not in `leased`, to which they are added. Those for NCCL and for
    the ranks of several nodes need not come from `ports`. Raises LaunchError."""
    host = variant.server.host
    leased = set() if leased is None else leased
    port = free_port(host, ports, taken=leased)
    leased.add(port)
    nccl_port = free_port(host, PORTS, taken=leased)
    leased.add(nccl_port)
    slot = Slot(gpu_ids=place.gpu_ids, port=port, nccl_port=nccl_port, nodes=place.nodes)
    if len(place.nodes) < 2:
        return slot
    init_port = free_port("0.0.0.0", PORTS, taken=leased)
    leased.add(init_port)
    return replace(slot, init_address=f"{place.address}:{init_port}")


def ended_lease(begun: Lease, place: Place) -> Lease:
    """Now."""
    return replace(begun, ended_utc=clock.utc_fine_text(), neighbours=tuple(sorted(place.neighbours)))


def give_back(slot: Slot, leased: set[int]) -> None:
    """Its ports."""
    init_port = slot.init_address.rpartition(":")[2]
    leased -= {slot.port, slot.nccl_port, int(init_port or 0)}


def check_host(host: str) -> None:
    """Asked once, not once a port: a name that does not resolve takes seconds. Raises LaunchError `no_such_host`."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise LaunchError("no_such_host", f"server.host {host} is no address of this machine: {why}") from None


def port_obstacles(variants: Collection[Variant], ports: range) -> Iterator[str]:
    """A sentence for each host on which no port of the range is free."""
    for host in dict.fromkeys(variant.server.host for variant in variants):
        try:
            free_port(host, ports)
        except LaunchError as error:
            yield error.cause
