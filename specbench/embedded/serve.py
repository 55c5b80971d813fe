"""The server's life: the engine loads, the port is bound, the ready line, requests, a signal, the end."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn

from specbench.embedded.arguments import ServerArguments
from specbench.embedded.dialect import DialectLog
from specbench.embedded.faults import Faults
from specbench.embedded.front import Front
from specbench.embedded.interface import Backend, EngineFailed

POLL_S = 0.05
"""How often a draining server looks whether its requests have ended. SGLang looks every 5 s."""
FORCE_SHUTDOWN = "SGL_FORCE_SHUTDOWN"
DIED = 1


def serve(backend: Backend, arguments: ServerArguments, faults: Faults | None = None) -> int:
    """Runs until a signal or the engine's death. Returns the exit code. `faults`: how a simulated one misbehaves."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(backend, arguments, faults or Faults()))


async def _serve(backend: Backend, arguments: ServerArguments, faults: Faults) -> int:
    log = DialectLog(
        backend.facts,
        decode_log_interval=arguments.decode_log_interval,
        tp_size=arguments.tp_size,
        log_level=arguments.log_level,
    )
    log.begin(", ".join(f"{key}={value!r}" for key, value in arguments.resolved.items()), arguments.warnings)
    try:
        await backend.start(log)
    except EngineFailed as failure:
        log.died(str(failure))
        return DIED
    log.limits()
    front = Front(backend, log, metrics=arguments.enable_metrics, api_key=arguments.api_key)
    server = _Server(
        uvicorn.Config(faults.around(front.app(), log), host=arguments.host, port=arguments.port, **_uvicorn_settings())
    )
    end = _End(server, front, backend, log)
    if faults.stops():
        end.listen()
    serving = asyncio.create_task(server.serve())
    try:
        await _announce(server, serving, front, log)
        return await end.come(serving)
    finally:
        await backend.stop()


async def _announce(server: uvicorn.Server, serving: asyncio.Task[None], front: Front, log: DialectLog) -> None:
    while not server.started and not serving.done():  # noqa: ASYNC110 (uvicorn has no event for it)
        await asyncio.sleep(0.005)
    if server.started:
        front.ready = True
        log.ready()


class _Server(uvicorn.Server):
    """Signals are ours: SGLang drains where uvicorn would close."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _End:
    """What ends the server: SIGTERM (drains), a second one or SIGINT (at once), or the engine's death."""

    def __init__(self, server: uvicorn.Server, front: Front, backend: Backend, log: DialectLog) -> None:
        self._server = server
        self._front = front
        self._backend = backend
        self._log = log
        self._draining: asyncio.Task[None] | None = None

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        loop.add_signal_handler(signal.SIGINT, self._leave_at_once)

    async def come(self, serving: asyncio.Task[None]) -> int:
        """The exit code: 0 after a signal, 1 when the engine died or the port could not be bound."""
        failing = asyncio.ensure_future(self._backend.failed())
        await asyncio.wait({serving, failing}, return_when=asyncio.FIRST_COMPLETED)
        if failing.done() and not serving.done():
            self._log.died(str(failing.result()))
            self._leave_at_once()
            await asyncio.wait({serving})
            return DIED
        failing.cancel()
        with suppress(SystemExit):  # uvicorn's own way to say that it could not bind; it has logged why
            serving.result()
        return 0 if self._front.ready else DIED

    def _terminate(self) -> None:
        if self._draining is not None or os.environ.get(FORCE_SHUTDOWN) == "1":
            self._leave_at_once()
            return
        self._front.closing = True
        self._log.draining()
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        while remaining := self._backend.running_requests + self._backend.queue_requests:
            self._log.leaving(remaining)
            for _ in range(100):
                if not self._backend.running_requests + self._backend.queue_requests:
                    break
                await asyncio.sleep(POLL_S)
        self._log.leaving(0)
        self._server.should_exit = True

    def _leave_at_once(self) -> None:
        if self._draining is not None:
            self._draining.cancel()  # or it would see its requests cut off and report that they have ended
        self._server.should_exit = True
        self._server.force_exit = True


def _uvicorn_settings() -> dict[str, Any]:
    """Start-up lines to stderr, access lines to stdout, both with SGLang's clock in front."""
    plain = {"format": "[%(asctime)s] %(levelname)s:     %(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}
    access = {
        "()": "uvicorn.logging.AccessFormatter",
        "fmt": '[%(asctime)s] INFO:     %(client_addr)s - "%(request_line)s" %(status_code)s',
        "datefmt": "%Y-%m-%d %H:%M:%S",
        "use_colors": False,
    }
    return {
        "loop": "none",
        "http": "httptools",
        "ws": "none",
        "lifespan": "off",
        "timeout_keep_alive": 600,
        "log_config": {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"plain": plain, "access": access},
            "handlers": {
                "plain": {"class": "logging.StreamHandler", "formatter": "plain", "stream": sys.stderr},
                "access": {"class": "logging.StreamHandler", "formatter": "access", "stream": sys.stdout},
            },
            "loggers": {
                "uvicorn": {"handlers": ["plain"], "level": "INFO", "propagate": False},
                "uvicorn.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
            },
        },
    }
