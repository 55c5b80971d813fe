"""A server that somebody else runs: nothing is launched, stopped or flushed. OpenAI's chat streaming, or SGLang's."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from specbench.dialects import EventReader, HttpRequest, LogLine, Message
from specbench.dialects.sglang_http import workload_reader, workload_request
from specbench.dialects.sglang_log import parse_line
from specbench.engines import Command, Endpoints, Engine, Launch
from specbench.errors import SpecbenchError
from specbench.suite import Drafter, Model, Variant, Workload

RESOLVED = {
    "max_running_requests": "max_running_requests",
    "speculative_algorithm": "algorithm",
    "speculative_num_draft_tokens": "draft_tokens",
    "speculative_num_steps": "steps",
    "speculative_eagle_topk": "topk",
    "model_path": "model_path",
    "version": "version",
}
"""What an SGLang says of itself, by neutral name; other servers have no such page."""


class External:
    """The engine `external`."""

    title = "external server"
    launches = False
    endpoints = Endpoints(ready=("/v1/models",), server_info=("/server_info", "/get_server_info"))

    def version(self, variant: Variant) -> str | None:
        """Not ours to ask; an SGLang tells it in its server info."""
        return None

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        """Whether it answers is asked by whoever runs the suite."""
        server, found = variant.server, []
        if not server.url:
            found.append(f"variant '{variant.name}': engine `external` needs `url:`, such as http://127.0.0.1:30000")
        elif fault := _url_fault(server.url):
            found.append(f"variant '{variant.name}': {fault}")
        if server.log and not Path(server.log).expanduser().is_file():
            found.append(f"variant '{variant.name}': the log file {server.log} does not exist")
        elif server.log and not os.access(Path(server.log).expanduser(), os.R_OK):
            found.append(f"variant '{variant.name}': the log file {server.log} can't be read")
        if variant.speculation is not None and variant.speculation.synthetic_length is not None:
            found.append(f"variant '{variant.name}': a server that runs already can't be told `synthetic_length`; remove it")
        return tuple(found)

    def prepare(self, model: Model, drafter: Drafter | None, note: Callable[[str], None]) -> None:
        """Nothing: its models are its own."""

    def command(self, launch: Launch) -> Command:
        raise SpecbenchError(f"variant '{launch.variant.name}' has no command: it is served already")

    def rehearsal(self, launch: Launch) -> Command:
        raise SpecbenchError(f"variant '{launch.variant.name}' can't be rehearsed: its server is not launched by specbench")

    def ready_line(self, line: LogLine) -> bool:
        return line.kind == "ready"

    def parse_log_line(self, line: str) -> LogLine:
        return parse_line(line)

    def death_cause(self, lines: Sequence[str], exit_code: int | None) -> str:
        return "the server is not one of ours, so why it ended is not known"

    def request(
        self, messages: Sequence[Message], workload: Workload, served_model: str, version: str | None
    ) -> HttpRequest:
        return workload_request(messages, workload, served_model, version)

    def event_reader(self, workload: Workload) -> EventReader:
        return workload_reader(workload)

    def resolved(self, server_info: dict[str, Any]) -> dict[str, Any]:
        named = {RESOLVED[key]: value for key, value in server_info.items() if key in RESOLVED and value is not None}
        if isinstance(server_info.get("disable_cuda_graph"), bool):
            named["cuda_graph"] = not server_info["disable_cuda_graph"]
        return named


def _url_fault(url: str) -> str | None:
    """Half a sentence; None for a url that can be asked."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
        if host and ":" not in host:
            host.encode("idna").decode("idna")
    except ValueError as error:
        return f"the url {url} can't be read: {error}"
    if parts.scheme not in ("http", "https"):
        return f"the url {url} must begin with http:// or https://"
    if not host or port == 0:
        return f"the url {url} names no host and port that can be asked"
    if parts.username is not None or parts.password is not None:
        return "the url holds a user or a password, which would be stored with the results; leave it out"
    return None


ENGINE: Final[Engine] = External()
