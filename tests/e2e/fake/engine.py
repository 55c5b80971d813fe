"""An engine in one file. The test puts it into a folder on the Python path as `specbench/engines/fake.py`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from specbench.dialects import EventReader, HttpRequest, LogLine, Message
from specbench.dialects.sglang_http import ChatReader, chat_request
from specbench.dialects.sglang_log import parse_line
from specbench.engines import Command, Endpoints, Engine, Launch
from specbench.suite import Drafter, Model, Variant, Workload


class Fake:
    """Starts `server.py`, which lies beside the folder `specbench` on the path."""

    title = "Fake"
    launches = True
    endpoints = Endpoints(flush=("/flush_cache",), server_info=("/server_info",))

    def version(self, variant: Variant) -> str | None:
        return "1.0"

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        lacking = [word for word in variant.server.args if str(word).startswith("--lacks")]
        return tuple(f"the fake engine lacks {str(word).partition('=')[2]}" for word in lacking)

    def prepare(self, model: Model, drafter: Drafter | None, note: Callable[[str], None]) -> None:
        note("the fake engine is prepared")

    def command(self, launch: Launch) -> Command:
        server = Path(__file__).parents[2] / "server.py"
        args = (str(word) for word in launch.variant.server.args)
        env = {name: str(value) for name, value in launch.variant.server.env.items()}
        port = 0 if launch.node_index else launch.slot.port  # further ranks answer nobody
        return Command(argv=(sys.executable, str(server), "--port", str(port), *args), env=env)

    def rehearsal(self, launch: Launch) -> Command:
        return self.command(launch)

    def ready_line(self, line: LogLine) -> bool:
        return line.kind == "ready"

    def parse_log_line(self, line: str) -> LogLine:
        return parse_line(line)

    def death_cause(self, lines: Sequence[str], exit_code: int | None) -> str:
        causes = [line for line in lines if line.startswith("RuntimeError")]
        return causes[0] if causes else f"it exited with {exit_code}"

    def request(
        self, messages: Sequence[Message], workload: Workload, served_model: str, version: str | None
    ) -> HttpRequest:
        return chat_request(
            messages,
            model=served_model,
            max_output_tokens=workload.max_output_tokens,
            temperature=workload.temperature,
            ignore_eos=workload.ignore_eos,
            version="0.5.23",
        )

    def event_reader(self, workload: Workload) -> EventReader:
        return ChatReader()

    def resolved(self, server_info: dict[str, Any]) -> dict[str, Any]:
        return {"max_running_requests": server_info["max_running_requests"]}


ENGINE: Final[Engine] = Fake()
