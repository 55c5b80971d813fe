"""Leases what one server may hold: GPUs and ports."""

import os
import random
import shutil
import socket
import subprocess
from collections.abc import Collection, Iterator

import psutil
from msgspec import Struct

from specbench.errors import LaunchError
from specbench.execution.nvml import FACTS, nvml
from specbench.execution.unreadable import UnreadableError
from specbench.plan import Slot
from specbench.suite import Suite, Variant

PORTS = range(20000, 30000)
"""Below the kernel's ephemeral range: a server binds minutes after the check, and no outgoing connection may take it."""

SMI_TIMEOUT_S = 20.0


class Gpu(Struct, frozen=True, kw_only=True):
    """One GPU as NVML or `nvidia-smi` lists it."""

    index: int
    name: str
    memory_bytes: int | None
    uuid: str | None = None


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


def lease(suite: Suite, variant: Variant, ports: range = PORTS, leased: set[int] | None = None) -> Slot:
    """The first GPUs of those that the suite gives, else of those visible, none on a CPU; two ports that are free now and
    not in `leased`, to which they are added. The second, for NCCL, is local and need not come from `ports`.
    Raises LaunchError."""
    host = variant.server.host
    leased = set() if leased is None else leased
    port = free_port(host, ports, taken=leased)
    leased.add(port)
    nccl_port = free_port(host, PORTS, taken=leased)
    leased.add(nccl_port)
    usable = (suite.hardware.gpu_ids or gpu_indices()) if suite.hardware.gpu_count else ()
    gpu_ids = tuple(usable[: variant.server.tensor_parallel])
    return Slot(gpu_ids=gpu_ids, port=port, nccl_port=nccl_port)


def check_host(host: str) -> None:
    """Asked once, not once a port: a name that does not resolve takes seconds. Raises LaunchError `no_such_host`."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise LaunchError("no_such_host", f"server.host {host} is no address of this machine: {why}") from None


def gpu_indices() -> list[int]:
    """Indices that a server may use: those in CUDA_VISIBLE_DEVICES, or all."""
    return [gpu.index for gpu in gpus()]


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that NVML lists, or else `nvidia-smi`, and CUDA_VISIBLE_DEVICES leaves; empty without both."""
    found = _by_nvml() or _by_smi()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not found:
        return tuple(found)
    chosen = [_named(part.strip(), found) for part in visible.split(",") if part.strip()]
    return tuple(found) if chosen and not any(chosen) else tuple(gpu for gpu in chosen if gpu is not None)


def _named(part: str, found: Collection[Gpu]) -> Gpu | None:
    """By index, or by (the beginning of) its UUID."""
    if part.isdigit():
        return next((gpu for gpu in found if gpu.index == int(part)), None)
    return next((gpu for gpu in found if gpu.uuid and gpu.uuid.startswith(part)), None)


def _by_nvml() -> list[Gpu]:
    try:
        with nvml() as library:
            facts = [library.read(index, FACTS) for index in range(library.count())]
    except UnreadableError:
        return []
    return [
        Gpu(index=one["index"], name=one["name"] or "unknown", memory_bytes=one["memory_bytes"], uuid=one["uuid"])
        for one in facts
    ]


def _by_smi() -> list[Gpu]:
    rows = (line.split(", ") for line in smi("index,name,memory.total").splitlines())
    return [Gpu(index=int(row[0]), name=row[1], memory_bytes=_mebibytes(row[2])) for row in rows if len(row) == 3]


def _mebibytes(text: str) -> int | None:
    number = text.removesuffix(" MiB")
    return int(number) * 2**20 if number.isdigit() else None


def smi(fields: str) -> str:
    """`nvidia-smi`'s CSV for these fields; empty when there is no such program or it fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, f"--query-gpu={fields}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=SMI_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def gpu_obstacles(suite: Suite, variants: Collection[Variant], found: Collection[Gpu]) -> Iterator[str]:
    """A sentence for each need that this machine does not meet."""
    given = suite.hardware.gpu_ids
    if given:
        found = [one for one in found if one.index in given] or [_given(index) for index in given]
    if suite.hardware.gpu_count > len(found):
        yield f"the suite needs {suite.hardware.gpu_count} GPUs and this machine has {_listed(found)}"
        return
    for variant in variants if suite.hardware.gpu_count else ():
        needed = variant.server.tensor_parallel
        if needed > len(found):
            yield f"variant '{variant.name}' needs {needed} GPUs (tensor_parallel) and this machine has {_listed(found)}"


def _given(index: int) -> Gpu:
    return Gpu(index=index, name="given in the suite", memory_bytes=None)


def _listed(found: Collection[Gpu]) -> str:
    return f"{len(found)} ({', '.join(gpu.name for gpu in found)})" if found else "none that NVML or nvidia-smi shows"


def port_obstacles(variants: Collection[Variant], ports: range) -> Iterator[str]:
    """A sentence for each host on which no port of the range is free."""
    for host in dict.fromkeys(variant.server.host for variant in variants):
        try:
            free_port(host, ports)
        except LaunchError as error:
            yield error.cause
