"""Server kinds, described purely: what to run, what to ask, how to read the answers.

One file an engine, ending with `ENGINE: Final[Engine] = …`; the file's name is the name in YAML. A file named
`specbench/engines/<name>.py` in any folder on the Python path is found as well. Nothing here starts a process or opens
a socket, but for `version`, which may ask the interpreter that will launch the engine.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from specbench.dialects import EventReader, HttpRequest, LogLine, Message
from specbench.errors import SpecbenchError
from specbench.models import is_missing
from specbench.plan import Slot
from specbench.suite import Drafter, Model, Variant, Workload

__path__ = pkgutil.extend_path(__path__, __name__)


class Launch(Struct, frozen=True, kw_only=True):
    """What a command line depends on."""

    model: Model
    drafter: Drafter | None
    variant: Variant
    slot: Slot
    version: str | None = None
    """The engine's version, when it could be read."""
    node_index: int = 0
    """Which of the slot's nodes the command is for; 0 has the HTTP port."""


class Command(Struct, frozen=True, kw_only=True):
    """A process to start, never through a shell."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    """Added to the environment."""
    unset: tuple[str, ...] = ()
    """Removed from it, such as a faked acceptance length."""


class Endpoints(Struct, frozen=True, kw_only=True):
    """Paths, each None when the engine has none. Lists are tried in order until one answers 200."""

    ready: tuple[str, ...] = ("/v1/models",)
    """Cheap; answering is necessary, not sufficient, when the engine also has a ready line."""
    flush: tuple[str, ...] = ()
    """POST; empties the prefix cache."""
    server_info: tuple[str, ...] = ()
    metrics: str | None = None
    ready_line_wait_s: float = 60.0
    """How long a ready path must have answered before that suffices without a ready line; 0: there is no such line."""


class Engine(Protocol):
    """A server kind."""

    @property
    def title(self) -> str:
        """Its name as its makers write it."""
        ...

    @property
    def launches(self) -> bool:
        """False when the server is somebody else's."""
        ...

    @property
    def endpoints(self) -> Endpoints: ...

    def version(self, variant: Variant) -> str | None:
        """Read from the interpreter that will launch it; None when it is not installed there."""
        ...

    def obstacles(self, model: Model, drafter: Drafter | None, variant: Variant) -> tuple[str, ...]:
        """What is lacking on this machine before anything starts, a sentence each; empty when nothing is."""
        ...

    def command(self, launch: Launch) -> Command:
        """The server's exact command. Must work for any `slot`, without the engine being installed."""
        ...

    def rehearsal(self, launch: Launch) -> Command:
        """The same command line for the simulated engine. Raises SpecbenchError where there is none."""
        ...

    def ready_line(self, line: LogLine) -> bool:
        """Whether this line of the log says that requests are welcome."""
        ...

    def parse_log_line(self, line: str) -> LogLine:
        """Never raises."""
        ...

    def death_cause(self, lines: Sequence[str], exit_code: int | None) -> str:
        """One sentence on why the server died, from its log."""
        ...

    def request(
        self, messages: Sequence[Message], workload: Workload, served_model: str, version: str | None
    ) -> HttpRequest:
        """The streaming request for a conversation."""
        ...

    def event_reader(self, workload: Workload) -> EventReader: ...

    def resolved(self, server_info: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the server resolved, under neutral names as far as they have one:
        `cuda_graph`, `max_running_requests`, `draft_tokens`, `steps`, `topk`, `max_total_tokens`, …"""
        ...


@runtime_checkable
class Prepares(Protocol):
    """What an engine has besides when it can fetch or make the models that a launch needs."""

    def prepare(self, model: Model, drafter: Drafter | None, note: Callable[[str], None]) -> None:
        """Called once before the first launch, so that no start-up time contains it. `note` hears of each step that
        takes time. Raises SpecbenchError in one sentence."""
        ...


@runtime_checkable
class TellsInItsLog(Protocol):
    """What an engine has besides when its log, not a page, says which arguments it resolved."""

    def resolved_by_line(self, line: LogLine) -> dict[str, Any]:
        """What one line says of them, under the names of `Engine.resolved`; empty for most lines."""
        ...


def no_method(name: str, drafter: Drafter | None) -> str:
    """Why a variant's speculation can't be written down. Where its drafter is missing, that is the fault."""
    if drafter is not None and is_missing(drafter.path):
        return (
            f"the drafter of variant '{name}', {drafter.path}, does not exist on this machine, so that its method can't be "
            "read from it: correct its `path`, or add `method:` to it"
        )
    return f"variant '{name}' names no method: add `method:` to its speculation or drafter"


def names() -> tuple[str, ...]:
    """Every engine found, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"))


def get(name: str) -> Engine:
    """Raises SpecbenchError when there is no such engine."""
    if name not in names():
        raise SpecbenchError(f"engine '{name}' does not exist; there are: {', '.join(names())}")
    engine: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    return engine
