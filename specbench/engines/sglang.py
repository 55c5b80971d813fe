"""SGLang, 0.4.6 to 0.5.23."""

import functools
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from specbench.dialects import DeathCause, EventReader, HttpRequest, LogLine, Message
from specbench.dialects.sglang_death import diagnose
from specbench.dialects.sglang_http import workload_reader, workload_request
from specbench.dialects.sglang_log import parse_line
from specbench.dialects.sglang_version import RateMeaning, graphs_off_flags, ngram_length_flag, rate_meaning, takes_nccl_port
from specbench.engines import Command, Endpoints, Engine, Launch, no_method
from specbench.errors import SpecbenchError
from specbench.models import is_missing
from specbench.suite import Drafter, Model, Speculation, Variant, Workload

ALGORITHMS = {
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "mtp": "NEXTN",
    "draft_model": "STANDALONE",
    "prompt_lookup": "NGRAM",
    "dflash": "DFLASH",
}
ALIASES = {
    "--model": "--model-path",
    "--tensor-parallel-size": "--tp-size",
    "--tp": "--tp-size",
    "--speculative-draft-model": "--speculative-draft-model-path",
    "--speculative-algo": "--speculative-algorithm",
    "--nccl-init-addr": "--dist-init-addr",
    "--speculative-dflash-block-size": "--speculative-num-draft-tokens",
}
SERVER_MODULE = "sglang.launch_server"
SIMULATED_MODULE = "specbench.embedded.simulated"
FAKED_ACCEPTANCE = ("SGLANG_SIMULATE_ACC_LEN", "SGLANG_SIMULATE_ACC_METHOD")
VERSION_TIMEOUT_S = 60.0
ASK_VERSION = "import importlib.metadata as m; print(m.version('sglang'))"
OURS = ("--port", "--host", "--nccl-port", "--base-gpu-id", "--nnodes", "--node-rank", "--dist-init-addr")
"""Given out by the lease of a slot; a suite can't set them. GPUs are given through CUDA_VISIBLE_DEVICES."""

RESOLVED = {
    "max_running_requests": "max_running_requests",
    "max_total_num_tokens": "max_total_tokens",
    "max_total_tokens": "max_total_tokens",
    "speculative_algorithm": "algorithm",
    "speculative_draft_model_path": "drafter_path",
    "speculative_num_draft_tokens": "draft_tokens",
    "speculative_num_steps": "steps",
    "speculative_eagle_topk": "topk",
    "mem_fraction_static": "mem_fraction_static",
    "attention_backend": "attention_backend",
    "disable_overlap_schedule": "overlap_disabled",
    "disable_radix_cache": "prefix_cache_disabled",
    "context_length": "context_length_tokens",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "cuda_graph_max_bs": "cuda_graph_max_batch_size",
    "cuda_graph_max_bs_decode": "cuda_graph_max_batch_size",
    "kv_cache_dtype": "kv_cache_dtype",
    "dtype": "dtype",
    "tp_size": "tensor_parallel",
    "dp_size": "data_parallel",
    "model_path": "model_path",
    "decode_log_interval": "decode_log_interval",
    "version": "version",
}


class Sglang:
    """The engine `sglang`."""

    title = "SGLang"
    launches = True
    endpoints = Endpoints(
        ready=("/v1/models", "/model_info", "/get_model_info"),  # never /health: it runs a request
        flush=("/flush_cache",),
        server_info=("/server_info", "/get_server_info"),  # the first from 0.5.6; the old one warns at each call
        metrics="/metrics",  # answers only with --enable-metrics
        ready_line_wait_s=180.0,  # `--log-level warning` drops the line; its warm-up request comes after the first answer
    )

    def version(self, variant: Variant) -> str | None:
        """Asked of the interpreter that will launch it."""
        return _version(_python(variant))

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        """What is lacking on this machine. GPUs are counted by whoever leases them."""
        python, found = _python(variant), []
        if shutil.which(python) is None:
            found.append(f"the interpreter {python} does not exist or can't be run")
        elif self.version(variant) is None:
            found.append(f"SGLang is not installed for {python}; install it there or set `python:` in the suite")
        for role, path in (("model", model.path), *((("drafter", drafter.path),) if drafter else ())):
            if path.startswith("specbench:"):
                found.append(f"the {role} {path} is made for the engine `openvino`; SGLang needs a folder or a repository")
            elif is_missing(path):
                found.append(f"the {role} {path} does not exist")
        found += _taken(variant)
        return tuple(found)

    def command(self, launch: Launch) -> Command:
        """The server's command: ours first, the suite's `args` last and verbatim."""
        return _command(launch, (_python(launch.variant), "-m", SERVER_MODULE))

    def rehearsal(self, launch: Launch) -> Command:
        """The same words for the simulated engine."""
        return _command(launch, (sys.executable, "-m", SIMULATED_MODULE))

    def ready_line(self, line: LogLine) -> bool:
        return line.kind == "ready"

    def parse_log_line(self, line: str) -> LogLine:
        return parse_line(line)

    def diagnose(
        self, lines: Sequence[str], exit_code: int | None, argv: Sequence[str] = (), version: str | None = None
    ) -> DeathCause:
        """`death_cause` with its code, decisive line, values and advice."""
        return diagnose(lines, exit_code, argv, version)

    def death_cause(self, lines: Sequence[str], exit_code: int | None) -> str:
        cause = diagnose(lines, exit_code)
        return f"{cause.sentence}: {cause.advice}" if cause.advice else cause.sentence

    def request(
        self, messages: Sequence[Message], workload: Workload, served_model: str, version: str | None
    ) -> HttpRequest:
        return workload_request(messages, workload, served_model, version)

    def event_reader(self, workload: Workload) -> EventReader:
        return workload_reader(workload)

    def rate_meaning(
        self,
        pairs: Sequence[tuple[float | None, float | None]],
        version: str | None = None,
        draft_tokens: int | None = None,
        steps: int | None = None,
    ) -> RateMeaning:
        """What the accept rates of its log mean."""
        return rate_meaning(pairs, version, draft_tokens, steps)

    def resolved(self, server_info: dict[str, Any]) -> dict[str, Any]:
        """Both shapes: arguments at the top level, or (older) only inside `internal_states`."""
        states = server_info.get("internal_states")
        inner = [one for one in states if isinstance(one, dict)] if isinstance(states, list) else []
        merged = {**(inner[0] if inner else {}), **server_info}
        named = {RESOLVED[key]: value for key, value in merged.items() if key in RESOLVED and value is not None}
        graph = _cuda_graph(merged)
        if graph is not None:
            named["cuda_graph"] = graph
        if inner:
            named["internal_state_count"] = len(inner)
        effective = [
            one["effective_max_running_requests_per_dp"] for one in inner if "effective_max_running_requests_per_dp" in one
        ]
        if effective:
            named["effective_max_running_requests_per_rank"] = min(effective)
        return named


def _taken(variant: Variant) -> Iterator[str]:
    """What its `args` set although specbench gives it out."""
    if taken := sorted(set(OURS) & _flags(variant.server.args)):
        yield (
            f"variant '{variant.name}' sets {', '.join(taken)} in `args`; ports, host, GPUs and nodes are given out by "
            "specbench"
        )


def _command(launch: Launch, prefix: tuple[str, ...]) -> Command:
    variant = launch.variant
    if refusal := next(_taken(variant), None):
        raise SpecbenchError(refusal)
    args = tuple(str(word) for word in variant.server.args)
    theirs = _flags(args)
    words = [word for flag in _own_flags(launch) if _name(flag[0]) not in theirs for word in flag]
    env = {name: str(value) for name, value in variant.server.env.items()}
    if launch.slot.gpu_ids:
        env["CUDA_VISIBLE_DEVICES"] = ",".join(str(one) for one in launch.slot.gpu_ids)
    if variant.speculation is not None and variant.speculation.synthetic_length is not None:
        env["SGLANG_SIMULATE_ACC_LEN"] = f"{variant.speculation.synthetic_length:g}"
    unset = tuple(name for name in FAKED_ACCEPTANCE if name not in env)
    return Command(argv=(*prefix, *words, *args), env=env, unset=unset)


def _own_flags(launch: Launch) -> list[tuple[str, ...]]:
    variant, slot = launch.variant, launch.slot
    flags: list[tuple[str, ...]] = [
        ("--model-path", _home(launch.model.path)),
        ("--tp-size", str(variant.server.tensor_parallel)),
        ("--host", variant.server.host),
        ("--port", str(slot.port)),
    ]
    if launch.model.revision:
        flags.append(("--revision", launch.model.revision))
    if slot.nccl_port and takes_nccl_port(launch.version):
        flags.append(("--nccl-port", str(slot.nccl_port)))
    if len(slot.nodes) > 1:
        flags += [
            ("--nnodes", str(len(slot.nodes))),
            ("--node-rank", str(launch.node_index)),
            ("--dist-init-addr", slot.init_address),
        ]
    if variant.speculation is not None:
        flags += _speculation_flags(launch, variant.speculation)
    if variant.cuda_graph is False and "--disable-cuda-graph" not in _flags(variant.server.args):
        flags += [(word,) for word in graphs_off_flags(launch.version)]
    return flags


def _speculation_flags(launch: Launch, speculation: Speculation) -> list[tuple[str, ...]]:
    """Steps, top-k and draft tokens are always stated: what SGLang would guess depends on its version."""
    method = speculation.method or (launch.drafter.method if launch.drafter else None)
    if method is None:
        raise SpecbenchError(no_method(launch.variant.name, launch.drafter))
    flags: list[tuple[str, ...]] = [("--speculative-algorithm", ALGORITHMS[method])]
    if launch.drafter is not None:
        flags.append(("--speculative-draft-model-path", _home(launch.drafter.path)))
        if launch.drafter.revision:
            flags.append(("--speculative-draft-model-revision", launch.drafter.revision))
    if method == "prompt_lookup":  # top-k is the breadth of its search; it has no draft steps of its own
        flags += [
            ("--speculative-num-draft-tokens", str(speculation.draft_tokens)),
            ("--speculative-ngram-max-bfs-breadth", str(speculation.topk)),
        ]
        if speculation.ngram is not None:
            flags.append((ngram_length_flag(launch.version), str(speculation.ngram)))
        return flags
    steps_count = 1 if method == "dflash" else speculation.steps_count  # one step drafts the whole block
    return [
        *flags,
        ("--speculative-num-steps", str(steps_count)),
        ("--speculative-eagle-topk", str(speculation.topk)),
        ("--speculative-num-draft-tokens", str(speculation.draft_tokens)),
    ]


def _flags(args: Sequence[str | int | float]) -> set[str]:
    """Flags among raw arguments, by their main name."""
    return {_name(word) for word in args if isinstance(word, str) and word.startswith("--")}


def _name(word: str) -> str:
    flag = word.partition("=")[0].replace("_", "-")
    return ALIASES.get(flag, flag)


def _cuda_graph(info: dict[str, Any]) -> bool | None:
    """Whether decode may run in CUDA graphs; None when the server does not say."""
    config = info.get("cuda_graph_config")
    decode = config.get("decode") if isinstance(config, dict) else None
    backend = (decode.get("backend") if isinstance(decode, dict) else None) or info.get("cuda_graph_backend_decode")
    if info.get("disable_cuda_graph") is True or backend == "disabled":
        return False
    return True if backend or "disable_cuda_graph" in info else None


def _python(variant: Variant) -> str:
    return _home(variant.server.python or sys.executable)


def _home(path: str) -> str:
    """`~` is the shell's word; no shell is used. All else stays as written."""
    return str(Path(path).expanduser()) if path.startswith("~") else path


@functools.cache
def _version(python: str) -> str | None:
    return _ask(python, ASK_VERSION)


def _ask(python: str, code: str) -> str | None:
    """One line that an interpreter prints; None when it can't."""
    try:
        done = subprocess.run((python, "-c", code), capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


ENGINE: Final[Engine] = Sglang()
