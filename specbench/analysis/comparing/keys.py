"""What must be the same on both sides before a difference means anything, flat: key to value."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from specbench.analysis.cells import admission_limit
from specbench.analysis.comparing import Difference
from specbench.errors import SpecbenchError
from specbench.records import RunRecord, TrialRecord
from specbench.suite import Suite, Variant

HOST: Final = (
    "host",
    "cpu_model",
    "cpu_allowed_count",
    "cpu_governor",
    "cpu_multithreading",
    "numa_nodes",
    "cgroup_limits",
    "kernel",
    "gpus",
    "gpu_driver",
    "cuda_version",
    "topology",
    "variables",
)
"""Of the run's environment."""
LAUNCH: Final = ("packages", "model_files", "drafter_files", "model_weights", "drafter_weights", "tokenizer")
"""Of each launch's environment."""
SERVER: Final = (
    "engine",
    "engine_version",
    "packages",
    "speculation",
    "drafter",
    "drafter_files",
    "drafter_weights",
    "cuda_graph",
    "args",
    "env",
    "tensor_parallel",
    "resolved",
    "admission",
    "gpu_ids",
    "gpu_settings",
)
"""Keys that one variant may differ in from another; naming two variants declares them all."""
LAUNCHES: Final = re.compile(r"\d+ launch(es)?\b")
"""How many there are may differ."""
CONSEQUENCES: Final = ("resolved",)
"""The server's own word follows from what it was told: declared with any other key of the server."""
RESOLVED_IGNORED: Final = ("version", "model_path", "drafter_path", "max_running_requests")
"""Said by other keys, or a folder's name."""
PLANTED: Final = ("faults",)
"""Of a rehearsal: what befalls its servers is what a comparison is to find, not what was asked of it."""
GPU_SETTINGS: Final = ("index", "uuid", "name", "power_limit_w")
WHICH: Final = ("index", "uuid")
LOAD_IGNORED: Final = ("name", "path", "timeout_s")
RECORDED: Final = (*HOST, *LAUNCH, "engine_version", "gpu_settings", "specbench_version")
"""Keys that were seen rather than asked for: without a value they are unknown, not off."""


def keys_of(run: RunRecord, suite: Suite, variant: Variant, records: Sequence[TrialRecord]) -> dict[str, Any]:
    """Every key of one side. A value that its launches do not agree on is the list of all."""
    found: dict[str, Any] = {
        "model": suite.model.path,
        "model.revision": suite.model.revision,
        "seed": suite.seed,
        "warmup": msgspec.to_builtins(suite.warmup),
        "specbench_version": run.specbench_version,
        "rehearsal": run.rehearsal and LAUNCHES.sub("launches", run.rehearsal),
        **_server(suite, variant, records),
        **_load(run, suite),
        **{name: run.environment.get(name) for name in HOST},
        **{name: _agreed(one.environment.get(name) for one in records) for name in LAUNCH},
        "gpu_settings": _agreed(_gpu_settings(one, suite.packing != "off") for one in records),
        "packing": suite.packing,
    }
    if run.simulated:
        simulation = msgspec.to_builtins(suite.rehearsal)
        found["simulation"] = {name: value for name, value in simulation.items() if name not in PLANTED}
    return found


def _server(suite: Suite, variant: Variant, records: Sequence[TrialRecord]) -> dict[str, Any]:
    drafter = suite.drafter_of(variant)
    widest = max((level for one in suite.workloads for level in one.concurrency), default=0)
    resolved = [{k: v for k, v in one.resolved.items() if k not in RESOLVED_IGNORED} for one in records]
    return {
        "engine": variant.engine,
        "engine_version": _agreed(one.engine_version for one in records),
        "speculation": msgspec.to_builtins(variant.speculation),
        "drafter": None if drafter is None else "@".join(filter(None, (drafter.path, drafter.revision))),
        "cuda_graph": variant.cuda_graph,
        "args": " ".join(str(word) for word in variant.server.args) or None,
        "env": {name: str(value) for name, value in variant.server.env.items()},
        "tensor_parallel": variant.server.tensor_parallel,
        "resolved": _agreed(resolved),
        "admission": _agreed(_admitted(one, widest) for one in records),
        "gpu_ids": _agreed(_held(one, suite.packing != "off") for one in records),
    }


def _admitted(record: TrialRecord, widest: int) -> int | None:
    """Requests that the server lets run at once, when that is fewer than are offered."""
    limit = admission_limit(record.resolved)
    return limit if limit is not None and limit < widest else None


def _held(record: TrialRecord, packed: bool) -> Any:
    """Packed launches rotate over slots of one kind: how many, not which."""
    return len(record.slot.gpu_ids) if packed else record.slot.gpu_ids


def _gpu_settings(record: TrialRecord, packed: bool) -> list[dict[str, Any]] | None:
    """Of each GPU that the launch held: which it is (not so where launches rotate over them), and how far it may go."""
    gpus = record.environment.get("gpus")
    if not isinstance(gpus, list):
        return None
    names = [name for name in GPU_SETTINGS if not (packed and name in WHICH)]
    return [{name: one.get(name) for name in names} for one in gpus if isinstance(one, dict)]


def _load(run: RunRecord, suite: Suite) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for workload in suite.workloads:
        for name, value in msgspec.to_builtins(workload).items():
            if name not in LOAD_IGNORED:
                found[f"workload.{workload.name}.{name}"] = value
        dataset = run.datasets.get(workload.name)
        found[f"workload.{workload.name}.prompts"] = dataset.get("sha256") if isinstance(dataset, dict) else dataset
    return found


def _agreed(values: Iterable[Any]) -> Any:
    distinct: list[Any] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    return distinct[0] if len(distinct) == 1 else distinct or None


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Difference, ...]:
    """In the order of `a`, then what only `b` has. Values that one side did not record are `unknown`, not different."""
    names = [name for name in dict.fromkeys([*a, *b]) if name not in unknown(a, b)]
    return tuple(_difference(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name))


def unknown(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys that one side recorded and the other did not."""
    return tuple(
        name for name in dict.fromkeys([*a, *b]) if is_recorded(name) and (a.get(name) is None) != (b.get(name) is None)
    )


def is_recorded(name: str) -> bool:
    """Whether it was seen rather than asked for."""
    return name in RECORDED or name.endswith(".prompts")


def _difference(name: str, a: Any, b: Any) -> Difference:
    """Of mappings only what differs is shown."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        parts = [part for part in dict.fromkeys([*a, *b]) if a.get(part) != b.get(part)]
        a, b = ({part: side.get(part) for part in parts} for side in (a, b))
    return Difference(key=name, a=_text(a), b=_text(b))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(one)}" for name, one in value.items())
    return msgspec.json.encode(value).decode()


def is_declared(key: str, factors: Iterable[str]) -> bool:
    """Whether a factor names this key, or what it stands under (`workload.chat`)."""
    factors = tuple(factors)
    if any(key == one or key.startswith(f"{one}.") for one in factors):
        return True
    return key in CONSEQUENCES and any(one in SERVER for one in factors)


def check_factors(factors: Iterable[str], known: Iterable[str]) -> None:
    """Raises SpecbenchError for a factor that is no key."""
    known = list(known)
    for factor in factors:
        if not any(key == factor or key.startswith(f"{factor}.") for key in known):
            raise SpecbenchError(f"--factor {factor}: there is no such key; there are: {', '.join(known)}")
