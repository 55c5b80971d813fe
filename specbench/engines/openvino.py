"""OpenVINO GenAI behind specbench's own server: real speculative decoding on a CPU, the quickstart's engine.

The server speaks SGLang's dialect, so that requests, answers and log are read as SGLang's. It drafts with a draft model
or by prompt lookup, in a chain; greedy acceptance is exact, and its counts per request are the engine's own.
"""

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from specbench import models
from specbench.dialects import DeathCause, EventReader, HttpRequest, LogLine, Message
from specbench.dialects.sglang_death import diagnose
from specbench.dialects.sglang_http import workload_reader, workload_request
from specbench.dialects.sglang_log import parse_line
from specbench.dialects.sglang_version import ngram_length_flag
from specbench.engines import Command, Endpoints, Engine, Launch
from specbench.errors import SpecbenchError
from specbench.suite import Drafter, Method, Model, Speculation, Variant, Workload

ALGORITHMS = {"draft_model": "STANDALONE", "prompt_lookup": "NGRAM"}
SERVER_MODULE = "specbench.embedded.openvino"
SIMULATED_MODULE = "specbench.embedded.simulated"
DIALECT_VERSION = "0.5.23"
"""The SGLang version whose dialect the server speaks."""
FAILED = "OpenVINO failed: "
"""Begins the server's own line on why it gives up."""
SMALLEST_CPU_COUNT = 2
"""OpenVINO GenAI 2026.4.1 dies of SIGFPE in its first step when it may use one core only."""
DEFAULT_NGRAM = 3
DECODE_LOG_INTERVAL = "10"
"""Steps from one decode line of the log to the next; SGLang's own 40 would leave short answers without any."""
OURS = ("--port", "--host")
VERSION_TIMEOUT_S = 60.0
INSTALL = "install it with: pip install 'specbench[openvino]'"
ASK_VERSION = "import importlib.metadata as m; print(m.version('openvino-genai'))"

RESOLVED = {
    "max_running_requests": "max_running_requests",
    "speculative_algorithm": "algorithm",
    "speculative_draft_model_path": "drafter_path",
    "speculative_num_draft_tokens": "draft_tokens",
    "disable_radix_cache": "prefix_cache_disabled",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "decode_log_interval": "decode_log_interval",
    "model_path": "model_path",
    "engine_version": "version",
}


class OpenVino:
    """The engine `openvino`."""

    title = "OpenVINO GenAI"
    launches = True
    endpoints = Endpoints(
        ready=("/v1/models",),
        flush=("/flush_cache",),
        server_info=("/server_info",),
        metrics="/metrics",
        ready_line_wait_s=10.0,
    )

    def version(self, variant: Variant) -> str | None:
        """Asked of the interpreter that will launch it."""
        return _version(_python(variant))

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        """What is lacking on this machine; fetches and makes nothing."""
        found = list(_refusals(variant, drafter))
        if variant.speculation is not None and variant.speculation.synthetic_length is not None:
            found.append(f"variant '{variant.name}': OpenVINO GenAI can't fake acceptance; remove `synthetic_length`")
        if self.version(variant) is None:
            found.append(f"OpenVINO GenAI is not installed for {_python(variant)}; {INSTALL}")
        if _cpu_count() < SMALLEST_CPU_COUNT:
            found.append(f"OpenVINO GenAI needs {SMALLEST_CPU_COUNT} CPU cores; this process may use one only")
        for role, path in (("model", model.path), *((("drafter", drafter.path),) if drafter else ())):
            sentence = _path_obstacle(role, path)
            if sentence:
                found.append(sentence)
        return tuple(found)

    def prepare(self, model: Model, drafter: Drafter | None, note: Callable[[str], None]) -> None:
        """Fetches and makes the `specbench:` models that are lacking. Raises SpecbenchError in one sentence."""
        for path in (model.path, *((drafter.path,) if drafter else ())):
            models.ensure(path, note)

    def command(self, launch: Launch) -> Command:
        """Ours first, the suite's `args` last and verbatim. Raises SpecbenchError for a method that it does not have."""
        return _command(launch, _python(launch.variant), SERVER_MODULE)

    def rehearsal(self, launch: Launch) -> Command:
        """The same words for the simulated engine."""
        return _command(launch, sys.executable, SIMULATED_MODULE)

    def ready_line(self, line: LogLine) -> bool:
        return line.kind == "ready"

    def parse_log_line(self, line: str) -> LogLine:
        return parse_line(line)

    def diagnose(
        self, lines: Sequence[str], exit_code: int | None, argv: Sequence[str] = (), version: str | None = None
    ) -> DeathCause:
        """The server's own last words if it had any, else what its log says."""
        for index, line in enumerate(lines):
            _, found, cause = line.partition(FAILED)
            if found:
                return DeathCause(code="engine_failed", sentence=FAILED + cause.strip(), decisive_line=index + 1)
        cause_found = diagnose(lines, exit_code, argv, DIALECT_VERSION)
        if cause_found.code != "unknown":
            return cause_found
        code = "an unknown exit code" if exit_code is None else f"exit code {exit_code}"
        return DeathCause(code="unknown", sentence=f"the server ended with {code}; its log names no cause")

    def death_cause(self, lines: Sequence[str], exit_code: int | None) -> str:
        cause = self.diagnose(lines, exit_code)
        return f"{cause.sentence}: {cause.advice}" if cause.advice else cause.sentence

    def request(
        self, messages: Sequence[Message], workload: Workload, served_model: str, version: str | None
    ) -> HttpRequest:
        """As to SGLang of the server's dialect; `version` is OpenVINO's own and changes nothing."""
        return workload_request(messages, workload, served_model, DIALECT_VERSION)

    def event_reader(self, workload: Workload) -> EventReader:
        return workload_reader(workload)

    def resolved(self, server_info: dict[str, Any]) -> dict[str, Any]:
        """There are no CUDA graphs, so `cuda_graph` is never among them."""
        return {RESOLVED[key]: value for key, value in server_info.items() if key in RESOLVED and value is not None}


def _method(speculation: Speculation, drafter: Drafter | None) -> Method:
    """Stated by the variant, else by its drafter, else by there being a drafter."""
    stated = speculation.method or (drafter.method if drafter else None)
    return stated or ("draft_model" if drafter else "prompt_lookup")


def _refusals(variant: Variant, drafter: Drafter | None) -> Iterator[str]:
    """What the engine can't do, a sentence each."""
    name = f"variant '{variant.name}'"
    if variant.server.tensor_parallel > 1:
        yield f"{name}: the engine openvino runs on one CPU; tensor_parallel must be 1"
    if variant.cuda_graph:
        yield f"{name}: the engine openvino has no CUDA graphs; leave `cuda_graph` out"
    taken = sorted(set(OURS) & {str(word).partition("=")[0] for word in variant.server.args})
    if taken:
        yield f"{name} sets {', '.join(taken)} in `args`; ports and host are given out by specbench"
    if variant.speculation is not None:
        yield from _speculation_refusals(name, variant.speculation, drafter)


def _speculation_refusals(name: str, speculation: Speculation, drafter: Drafter | None) -> Iterator[str]:
    method = _method(speculation, drafter)
    if method not in ALGORITHMS:
        yield f"{name}: the engine openvino drafts by draft_model or prompt_lookup, not by {method}"
    elif method == "draft_model" and drafter is None:
        yield f"{name}: draft_model needs a `drafter`"
    elif method == "prompt_lookup" and drafter is not None:
        yield f"{name}: prompt_lookup takes no drafter"
    if speculation.topk != 1 or speculation.steps_count != speculation.proposed_tokens:
        steps_count = speculation.proposed_tokens
        yield f"{name}: the engine openvino drafts in a chain; leave `topk` and `steps` out (1 and {steps_count})"


def _path_obstacle(role: str, path: str) -> str | None:
    if models.is_own(path):
        if models.is_made(path) or _can_make():
            return None
        return f"making the {role} {path} needs the extra `openvino`; {INSTALL}"
    folder = models.folder_of(path)
    if not folder.exists():
        return f"the {role} {path} does not exist; the engine openvino takes a local folder or a `specbench:` model"
    if not (folder / "openvino_model.xml").is_file():
        return f"the {role} {path} is no OpenVINO model: it holds no openvino_model.xml"
    return None


def _command(launch: Launch, python: str, module: str) -> Command:
    refusal = next(_refusals(launch.variant, launch.drafter), None)
    if refusal is not None:
        raise SpecbenchError(refusal)
    server = launch.variant.server
    words = ["--model-path", str(models.folder_of(launch.model.path))]
    words += ["--host", server.host, "--port", str(launch.slot.port), "--enable-metrics"]
    words += ["--decode-log-interval", DECODE_LOG_INTERVAL]
    if launch.variant.speculation is not None:
        words += _speculation_words(launch.variant.speculation, launch.drafter)
    words += [str(word) for word in server.args]
    env = {name: str(value) for name, value in server.env.items()}
    return Command(argv=(python, "-m", module, *words), env=env)


def _speculation_words(speculation: Speculation, drafter: Drafter | None) -> list[str]:
    words = ["--speculative-algorithm", ALGORITHMS[_method(speculation, drafter)]]
    tokens = ["--speculative-num-draft-tokens", str(speculation.draft_tokens)]
    if drafter is None:
        return [*words, *tokens, ngram_length_flag(DIALECT_VERSION), str(speculation.ngram or DEFAULT_NGRAM)]
    words += ["--speculative-draft-model-path", str(models.folder_of(drafter.path))]
    return [*words, "--speculative-num-steps", str(speculation.steps_count), "--speculative-eagle-topk", "1", *tokens]


def _python(variant: Variant) -> str:
    return os.path.expanduser(variant.server.python or sys.executable)  # noqa: PTH111  Path makes `./python` a `python`


@functools.cache
def _version(python: str) -> str | None:
    try:
        done = subprocess.run(
            (python, "-c", ASK_VERSION), capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _cpu_count() -> int:
    """Cores that this process, and so the server, may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _can_make() -> bool:
    """Models are made by the interpreter that runs specbench, whichever launches the server."""
    return all(importlib.util.find_spec(name) is not None for name in ("gguf", "openvino_genai"))


ENGINE: Final[Engine] = OpenVino()
