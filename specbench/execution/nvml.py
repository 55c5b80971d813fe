"""GPUs through NVML (package `nvidia-ml-py`, extra `gpu`), imported when it is asked; all of it works without.

Each value that can't be read is None, with the reason beside it.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from specbench.execution.unreadable import UnreadableError

THROTTLE_REASONS: Final[Mapping[int, str]] = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of `nvmlDeviceGetCurrentClocksThrottleReasons`, as nvml.h has them."""
SM, MEMORY, GPU_SENSOR = 1, 2, 0
"""NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU."""
MODES: Final = ("default", "exclusive_thread", "prohibited", "exclusive_process")
PCI_DEVICES: Final = Path("/sys/bus/pci/devices")
Read = Callable[[Any, Any], Any]
"""From the library and a GPU's handle."""


def _call(function: str, *more: int) -> Read:
    return lambda lib, handle: getattr(lib, function)(handle, *more)


def _milliwatt(function: str) -> Read:
    return lambda lib, handle: getattr(lib, function)(handle) / 1000


def _words(function: str) -> Read:
    return lambda lib, handle: _text(getattr(lib, function)(handle))


def _reasons(lib: Any, handle: Any) -> list[str]:
    ask = getattr(lib, "nvmlDeviceGetCurrentClocksEventReasons", None) or lib.nvmlDeviceGetCurrentClocksThrottleReasons
    bits = int(ask(handle))
    return [name for bit, name in THROTTLE_REASONS.items() if bits & bit]


def _nvlinks(lib: Any, handle: Any) -> int:
    """How many links are up."""
    up = 0
    for link in range(int(getattr(lib, "NVML_NVLINK_MAX_LINKS", 18))):
        try:
            up += int(lib.nvmlDeviceGetNvLinkState(handle, link))
        except lib.NVMLError:
            if link == 0:
                raise
            break  # it has no more
    return up


def _numa_node(lib: Any, handle: Any) -> int:
    """By the GPU's PCI address, as the system has it; NVML's own is that of a GPU which is a NUMA node itself."""
    domain, _, rest = _text(lib.nvmlDeviceGetPciInfo(handle).busId).lower().partition(":")
    with suppress(OSError, ValueError):
        found = int((PCI_DEVICES / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
        if found >= 0:
            return found
    return int(lib.nvmlDeviceGetNumaNodeId(handle))


FACTS: Final[Mapping[str, Read]] = {
    "name": _words("nvmlDeviceGetName"),
    "uuid": _words("nvmlDeviceGetUUID"),
    "pci_bus_id": lambda lib, handle: _text(lib.nvmlDeviceGetPciInfo(handle).busId),
    "vbios": _words("nvmlDeviceGetVbiosVersion"),
    "memory_bytes": lambda lib, handle: int(lib.nvmlDeviceGetMemoryInfo(handle).total),
    "power_limit_w": _milliwatt("nvmlDeviceGetPowerManagementLimit"),
    "power_limit_default_w": _milliwatt("nvmlDeviceGetPowerManagementDefaultLimit"),
    "sm_clock_max_mhz": _call("nvmlDeviceGetMaxClockInfo", SM),
    "memory_clock_max_mhz": _call("nvmlDeviceGetMaxClockInfo", MEMORY),
    "sm_clock_application_mhz": _call("nvmlDeviceGetApplicationsClock", SM),
    "persistence_mode": lambda lib, handle: bool(lib.nvmlDeviceGetPersistenceMode(handle)),
    "ecc": lambda lib, handle: bool(lib.nvmlDeviceGetEccMode(handle)[0]),
    "mig": lambda lib, handle: bool(lib.nvmlDeviceGetMigMode(handle)[0]),
    "compute_mode": lambda lib, handle: MODES[lib.nvmlDeviceGetComputeMode(handle)],
    "nvlinks_up_count": _nvlinks,
    "numa_node": _numa_node,
}
"""What does not change while a server runs."""
SAMPLE: Final[Mapping[str, Read]] = {
    "sm_clock_mhz": _call("nvmlDeviceGetClockInfo", SM),
    "memory_clock_mhz": _call("nvmlDeviceGetClockInfo", MEMORY),
    "power_w": _milliwatt("nvmlDeviceGetPowerUsage"),
    "energy_j": _milliwatt("nvmlDeviceGetTotalEnergyConsumption"),
    "temperature_c": _call("nvmlDeviceGetTemperature", GPU_SENSOR),
    "throttle_reasons": _reasons,
    "busy_ratio": lambda lib, handle: int(lib.nvmlDeviceGetUtilizationRates(handle).gpu) / 100,
    "memory_used_bytes": lambda lib, handle: int(lib.nvmlDeviceGetMemoryInfo(handle).used),
}


class Nvml:
    """The library, initialised. Its methods raise UnreadableError; `read` never does."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

    def driver(self) -> str:
        return _text(self._asked(self._lib.nvmlSystemGetDriverVersion))

    def cuda_version(self) -> str:
        """The newest CUDA that the driver supports."""
        number = self._asked(lambda: int(self._lib.nvmlSystemGetCudaDriverVersion()))
        return f"{number // 1000}.{number % 1000 // 10}"

    def count(self) -> int:
        return int(self._asked(self._lib.nvmlDeviceGetCount))

    def read(self, index: int, readers: Mapping[str, Read]) -> dict[str, Any]:
        """Values by name, `index`, and `reasons` for those that are None. `lost` is True for a GPU that fell off the bus."""
        reasons: dict[str, str] = {}
        try:
            handle = self._asked(lambda: self._lib.nvmlDeviceGetHandleByIndex(index))
        except UnreadableError as error:
            return dict.fromkeys(readers) | {"index": index, "lost": is_lost(str(error)), "reasons": {"gpu": str(error)}}
        values: dict[str, Any] = {"index": index}
        for name, read in readers.items():
            try:
                values[name] = self._asked(partial(read, self._lib, handle))
            except UnreadableError as error:
                values[name], reasons[name] = None, str(error)
        return values | {"lost": any(map(is_lost, reasons.values())), "reasons": reasons}

    def memory(self, index: int) -> tuple[int, int]:
        """Bytes used and in all."""
        lib = self._lib
        found = self._asked(lambda: lib.nvmlDeviceGetMemoryInfo(lib.nvmlDeviceGetHandleByIndex(index)))
        return int(found.used), int(found.total)

    def occupants(self, index: int) -> list[tuple[int, int | None]]:
        """Process ids and the bytes that each holds on a GPU; None where the driver does not say."""
        lib = self._lib
        found = self._asked(lambda: lib.nvmlDeviceGetComputeRunningProcesses(lib.nvmlDeviceGetHandleByIndex(index)))
        return [(int(one.pid), one.usedGpuMemory) for one in found]

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except self._lib.NVMLError as error:
            raise UnreadableError(f"NVML: {error}") from None
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise UnreadableError(f"this nvidia-ml-py can't tell: {error}") from None


@contextmanager
def nvml() -> Iterator[Nvml]:
    """Raises UnreadableError with the reason where there is none."""
    try:
        lib = importlib.import_module("pynvml")
    except ImportError:
        raise UnreadableError("NVML can't be asked without the package nvidia-ml-py: pip install 'specbench[gpu]'") from None
    try:
        lib.nvmlInit()
    except lib.NVMLError as error:
        raise UnreadableError(f"NVML: {error}") from None
    try:
        yield Nvml(lib)
    finally:
        lib.nvmlShutdown()


def gpu_facts(gpu_ids: Sequence[int]) -> list[dict[str, Any]]:
    """`FACTS` of each, and how it is now. Raises UnreadableError."""
    with nvml() as library:
        return [library.read(index, {**FACTS, **SAMPLE}) for index in gpu_ids]


def is_lost(reason: str) -> bool:
    """Whether NVML says that the GPU fell off the bus."""
    return "lost" in reason.lower()


def _text(value: Any) -> str:
    """Older versions of the package give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
