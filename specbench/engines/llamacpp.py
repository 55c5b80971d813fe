"""llama.cpp's server: a GGUF target, a GGUF drafter, and `--spec-type`, without which a drafter is loaded and never used."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from specbench.dialects import DeathCause, EventReader, HttpRequest, LogLine, Message
from specbench.dialects.llamacpp_events import diagnose
from specbench.dialects.llamacpp_http import Reader, workload_request
from specbench.dialects.llamacpp_log import LlamaLog
from specbench.engines import Command, Endpoints, Engine, Launch
from specbench.errors import SpecbenchError
from specbench.suite import Drafter, Method, Model, Speculation, Variant, Workload

BINARY: Final = "llama-server"
BINARY_VARIABLE: Final = "SPECBENCH_LLAMA_SERVER"
"""Names the program where it is not on the PATH."""
VERSION_TIMEOUT_S: Final = 20.0
VERSION: Final = re.compile(r"version: (?P<word>\d[\w.+-]*)(?: \(build (?P<build>\d+))?")
"""`5123 (0c1e570)` in older builds, `0.5.0-dev (build 11434, commit 0c1e570)` in newer ones."""
TYPES: Final[dict[Method, str]] = {
    "draft_model": "draft-simple",
    "eagle3": "draft-eagle3",
    "mtp": "draft-mtp",
    "dflash": "draft-dflash",
    "prompt_lookup": "ngram-simple",
}
OURS: Final = ("--host", "--port", "-m", "--model")


class LlamaCpp:
    """The engine `llamacpp`."""

    title = "llama.cpp"
    launches = True
    endpoints = Endpoints(ready=("/health",), server_info=("/props",), metrics="/metrics", ready_line_wait_s=10.0)

    def version(self, variant: Variant) -> str | None:
        """The build's number, as the program prints it; its version where it was built without llama.cpp's history."""
        return _version(_binary())

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        """What is lacking on this machine."""
        found = list(_refusals(variant))
        if shutil.which(_binary()) is None:
            found.append(f"{_binary()} is not there or not on the PATH; install llama.cpp, or set {BINARY_VARIABLE}")
        for role, path in (("model", model.path), *((("drafter", drafter.path),) if drafter else ())):
            if not Path(path).expanduser().is_file():
                found.append(f"the {role} {path} is no file; the engine llamacpp takes a GGUF file")
        return tuple(found)

    def command(self, launch: Launch) -> Command:
        """Ours first, the suite's `args` last and verbatim. Raises SpecbenchError for a method that it does not have."""
        refusal = next(_refusals(launch.variant), None)
        if refusal is not None:
            raise SpecbenchError(refusal)
        server = launch.variant.server
        words = [_binary(), "-m", str(Path(launch.model.path).expanduser())]
        words += ["--host", server.host, "--port", str(launch.slot.port)]
        words += ["--metrics", "--log-prefix", "--log-timestamps"]
        if launch.variant.speculation is not None:
            words += _speculation_words(launch.variant.speculation, launch.drafter)
        words += [str(word) for word in server.args]
        return Command(argv=tuple(words), env={name: str(value) for name, value in server.env.items()})

    def rehearsal(self, launch: Launch) -> Command:
        raise SpecbenchError(
            f"variant '{launch.variant.name}' can't be rehearsed: no simulated server speaks llama.cpp's words"
        )

    def ready_line(self, line: LogLine) -> bool:
        return line.kind == "ready"

    def parse_log_line(self, line: str) -> LogLine:
        """Phases and faults. The blocks of figures span lines; acceptance comes with each answer, exactly."""
        found = LlamaLog().parse_line(line)
        return LogLine(kind="known", ts=found.ts, name="request", text=found.text) if found.sample is not None else found

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
        """Of `/props`: slots, model, its type, template and context, and how it drafts."""
        found: dict[str, Any] = {}
        if isinstance(server_info.get("total_slots"), int):
            found["max_running_requests"] = server_info["total_slots"]
        if isinstance(server_info.get("model_path"), str):
            found["model_path"] = server_info["model_path"]
        if isinstance(server_info.get("build_info"), str):
            found["version"] = server_info["build_info"]
        if isinstance(server_info.get("model_ftype"), str):
            found["dtype"] = server_info["model_ftype"]
        if isinstance(server_info.get("chat_template"), str):
            found["chat_template_sha256"] = hashlib.sha256(server_info["chat_template"].encode()).hexdigest()[:16]
        return found | _of_settings(server_info.get("default_generation_settings"))


def _of_settings(settings: object) -> dict[str, Any]:
    """Of the settings that `/props` gives a request by default."""
    found: dict[str, Any] = {}
    if isinstance(settings, dict):
        params = settings.get("params")
        if isinstance(settings.get("n_ctx"), int):
            found["context_length_tokens"] = settings["n_ctx"]
        if isinstance(params, dict) and isinstance(params.get("speculative.types"), str):
            found["algorithm"] = params["speculative.types"]
    return found


def _refusals(variant: Variant) -> Iterator[str]:
    """What the engine can't do, a sentence each."""
    name, speculation = f"variant '{variant.name}'", variant.speculation
    taken = sorted(set(OURS) & {str(word).partition("=")[0] for word in variant.server.args})
    if taken:
        yield f"{name} sets {', '.join(taken)} in `args`; model, ports and host are given out by specbench"
    if variant.cuda_graph is not None:
        yield f"{name}: the engine llamacpp has no flag for CUDA graphs; leave `cuda_graph` out"
    if speculation is None:
        return
    if speculation.method is not None and speculation.method not in TYPES:
        yield f"{name}: llama.cpp does not draft by {speculation.method}; it has {', '.join(TYPES)}"
    if speculation.topk != 1 or speculation.steps_count != speculation.proposed_tokens:
        yield f"{name}: llama.cpp drafts in a chain; leave `topk` and `steps` out (1 and {speculation.proposed_tokens})"


def _speculation_words(speculation: Speculation, drafter: Drafter | None) -> list[str]:
    """How to draft is always said: a drafter alone is loaded and not used."""
    method: Method = (
        speculation.method or (drafter.method if drafter else None) or ("draft_model" if drafter else "prompt_lookup")
    )
    words = ["--spec-type", TYPES[method]]
    if drafter is not None:
        words += ["--spec-draft-model", str(Path(drafter.path).expanduser())]
    if method == "prompt_lookup":  # which does not heed --spec-draft-n-max: left alone it proposes 48 tokens
        words += ["--spec-ngram-simple-size-m", str(speculation.proposed_tokens)]
        words += ["--spec-ngram-simple-size-n", str(speculation.ngram)] if speculation.ngram is not None else []
    else:
        words += ["--spec-draft-n-max", str(speculation.proposed_tokens)]
    if speculation.synthetic_length is not None:
        words += ["--spec-synth-len", f"{speculation.synthetic_length:g}"]
    return words


def _binary() -> str:
    return os.path.expanduser(os.environ.get(BINARY_VARIABLE) or BINARY)  # noqa: PTH111  Path makes `./x` an `x`


@functools.cache
def _version(binary: str) -> str | None:
    try:
        done = subprocess.run((binary, "--version"), capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return version_of(done.stdout + done.stderr)


def version_of(said: str) -> str | None:
    """Of what `--version` prints. A build without the history, or with one commit of it, has no number that tells."""
    found = VERSION.search(said)
    if found is None:
        return None
    number = found["build"] or (found["word"] if found["word"].isdigit() else "0")
    return f"b{number}" if int(number) > 1 else found["word"] if "." in found["word"] else None


ENGINE: Final[Engine] = LlamaCpp()
