"""Stands for `pynvml` where there is no GPU: the real package's function names, numbers and error classes, as far as they
are used. What it shows is the JSON file that the environment variable `FAKE_NVML` names, read at every call.

No real NVML with a GPU behind it was seen when this was written.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

GIB = 2**30
PLAIN: dict[str, Any] = {
    "name": "NVIDIA H200",
    "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "total_bytes": 140 * GIB,
    "used_bytes": 1 * GIB,
    "processes": [],
    "sm_clock_mhz": 1980,
    "reasons": 0,
    "lost": False,
    "lacks": [],
}


class NVMLError(Exception):
    """`value` is NVML's number."""

    value = 999
    words = "Unknown Error"

    def __str__(self) -> str:
        return self.words


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818 (the package's own name)
    value, words = 3, "Not Supported"


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801, N818
    value, words = 12, "NVML Shared Library Not Found"


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801, N818
    value, words = 15, "GPU is lost"


def shown() -> list[dict[str, Any]]:
    told = json.loads(Path(os.environ["FAKE_NVML"]).read_text())
    return [{**PLAIN, **gpu} for gpu in told]


def gpu(handle: int, wanted: str = "") -> dict[str, Any]:
    one = shown()[handle]
    if one["lost"]:
        raise NVMLError_GpuIsLost
    if wanted in one["lacks"]:
        raise NVMLError_NotSupported
    return one


def nvmlInit() -> None:  # noqa: N802
    if not os.environ.get("FAKE_NVML"):
        raise NVMLError_LibraryNotFound


def nvmlShutdown() -> None:  # noqa: N802
    return


def nvmlSystemGetDriverVersion() -> bytes:  # noqa: N802 (bytes, as in older versions)
    return b"575.57.08"


def nvmlSystemGetCudaDriverVersion() -> int:  # noqa: N802
    return 12090


def nvmlDeviceGetCount() -> int:  # noqa: N802
    return len(shown())


def nvmlDeviceGetHandleByIndex(index: int) -> int:  # noqa: N802
    return index


def nvmlDeviceGetName(handle: int) -> str:  # noqa: N802
    return str(gpu(handle)["name"])


def nvmlDeviceGetUUID(handle: int) -> str:  # noqa: N802
    return str(gpu(handle)["uuid"])


def nvmlDeviceGetPciInfo(handle: int) -> SimpleNamespace:  # noqa: N802
    return SimpleNamespace(busId=f"00000000:{gpu(handle) and handle:02x}:00.0")


def nvmlDeviceGetVbiosVersion(handle: int) -> str:  # noqa: N802
    return "96.00.A5.00.01" if gpu(handle, "vbios") else ""


def nvmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:  # noqa: N802
    one = gpu(handle)
    return SimpleNamespace(total=one["total_bytes"], used=one["used_bytes"], free=one["total_bytes"] - one["used_bytes"])


def nvmlDeviceGetPowerManagementLimit(handle: int) -> int:  # noqa: N802
    return 700_000 if gpu(handle) else 0


def nvmlDeviceGetPowerManagementDefaultLimit(handle: int) -> int:  # noqa: N802
    return 700_000 if gpu(handle) else 0


def nvmlDeviceGetPowerUsage(handle: int) -> int:  # noqa: N802
    return 512_345 if gpu(handle) else 0


def nvmlDeviceGetTotalEnergyConsumption(handle: int) -> int:  # noqa: N802
    return 9_000 if gpu(handle, "energy") else 0


def nvmlDeviceGetTemperature(handle: int, sensor: int) -> int:  # noqa: N802
    return 61 if gpu(handle) else sensor


def nvmlDeviceGetClockInfo(handle: int, kind: int) -> int:  # noqa: N802
    return int(gpu(handle)["sm_clock_mhz"]) if kind == 1 else 3201


def nvmlDeviceGetMaxClockInfo(handle: int, kind: int) -> int:  # noqa: N802
    return (1980 if kind == 1 else 3201) if gpu(handle) else 0


def nvmlDeviceGetApplicationsClock(handle: int, kind: int) -> int:  # noqa: N802
    raise NVMLError_NotSupported if gpu(handle) else NVMLError


def nvmlDeviceGetCurrentClocksThrottleReasons(handle: int) -> int:  # noqa: N802
    return int(gpu(handle)["reasons"])


def nvmlDeviceGetUtilizationRates(handle: int) -> SimpleNamespace:  # noqa: N802
    return SimpleNamespace(gpu=87 if gpu(handle) else 0, memory=40)


def nvmlDeviceGetPersistenceMode(handle: int) -> int:  # noqa: N802
    return 1 if gpu(handle) else 0


def nvmlDeviceGetEccMode(handle: int) -> list[int]:  # noqa: N802
    return [1, 1] if gpu(handle) else []


def nvmlDeviceGetMigMode(handle: int) -> list[int]:  # noqa: N802
    return [0, 0] if gpu(handle) else []


def nvmlDeviceGetComputeMode(handle: int) -> int:  # noqa: N802
    return 0 if gpu(handle) else 2


def nvmlDeviceGetComputeRunningProcesses(handle: int) -> list[SimpleNamespace]:  # noqa: N802
    return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in gpu(handle)["processes"]]
