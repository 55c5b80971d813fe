"""Commits the faults that the simulated server was asked for: while it loads, and around its front."""

import asyncio
import os
import signal
import socket
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specbench.embedded.dialect import DialectLog
from specbench.embedded.interface import EngineFailed
from specbench.suite.faults import FAULTS, numbers_of

FLAG: Final = "--fault"
GENERATING: Final = frozenset({"/generate", "/v1/chat/completions"})
STREAMS: Final = (1, 2)
DIED: Final = 1
HALF_EVENT: Final = b'data: {"choices": [{"delta": {"content": "SIMULATED gar\n\n'
STATUS: Final = {"http_429": (429, "SIMULATED: too many requests"), "http_500": (500, "SIMULATED: internal error")}


def without_faults(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The command line as SGLang knows it, and the values of each `--fault`."""
    rest: list[str] = []
    wanted: list[str] = []
    words = iter(argv)
    for word in words:
        if word == FLAG:
            wanted.append(next(words, ""))
        elif word.startswith(f"{FLAG}="):
            wanted.append(word.partition("=")[2])
        else:
            rest.append(word)
    return rest, tuple(wanted)


class Faults:
    """Those asked for, with their numbers. Raises ValueError for one that does not exist."""

    def __init__(self, wanted: Sequence[str] = ()) -> None:
        self.numbers: Mapping[str, float] = numbers_of(wanted)

    async def while_loading(self, phase: str) -> None:
        """Raises EngineFailed; or takes long; or for ever."""
        if phase == "weights":
            await asyncio.sleep(self.numbers.get("slow_start", 0.0))
            if "hang_loading" in self.numbers:
                await asyncio.Event().wait()
            if "crash_loading" in self.numbers:
                raise EngineFailed("CUDA out of memory. SIMULATED, as asked for by --fault crash_loading")
        if phase == "graph_capture" and "crash_graph_capture" in self.numbers:
            raise EngineFailed("Capture cuda graph failed: CUDA out of memory. SIMULATED: --fault crash_graph_capture")

    def stops(self) -> bool:
        """Whether it listens to signals as it should; if not, it is made deaf now."""
        if "never_stops" not in self.numbers:
            return True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        return False

    def around(self, app: ASGIApp, log: DialectLog) -> ASGIApp:
        """The front, and what befalls its requests."""
        return FaultyFront(app, self.numbers, log) if self.numbers else app


class FaultyFront:
    """An ASGI application around another. Requests that generate are counted from 1."""

    def __init__(self, app: ASGIApp, numbers: Mapping[str, float], log: DialectLog) -> None:
        self._app = app
        self._numbers = numbers
        self._log = log
        self._count = 0
        self._hung = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._hung:
            await asyncio.Event().wait()
        if scope["type"] != "http" or scope["path"] not in GENERATING:
            await self._app(scope, receive, send)
            return
        self._count += 1
        self._at_arrival()
        for name, (code, text) in STATUS.items():
            if self._is_due(name):
                await _refuse(send, code, text)
                return
        await self._app(scope, receive, self._faulty(send, receive))

    def _at_arrival(self) -> None:
        if "crash_first_request" in self._numbers:
            self._die("CUDA error: an illegal memory access was encountered. SIMULATED: --fault crash_first_request")
        for name, disturb in LOG_FAULTS.items():
            if self._numbers.get(name) == self._count:
                disturb(self._log)

    def _is_due(self, name: str) -> bool:
        """Whether this request is the N-th, 2 N-th, …"""
        return name in self._numbers and self._count % max(1, round(self._numbers[name])) == 0

    def _faulty(self, send: Send, receive: Receive) -> Send:
        """What befalls an answer befalls it at its second piece."""
        count, broken, resets = self._count, self._is_due("garbage"), self._is_due("reset")
        pieces_count = 0

        async def sent(message: Message) -> None:
            nonlocal pieces_count
            pieces_count += message["type"] == "http.response.body"
            if pieces_count == 2:
                if self._numbers.get("crash_under_load") == count:
                    self._die("CUDA error: an illegal memory access was encountered. SIMULATED: --fault crash_under_load")
                self._hung = self._hung or self._numbers.get("hang_under_load") == count
                if resets:
                    _reset(receive)
                if broken:
                    message = {**message, "body": HALF_EVENT}
            if self._hung:
                await asyncio.Event().wait()
            await send(message)

        return sent

    def _die(self, cause: str) -> NoReturn:
        self._log.died(cause)
        os._exit(DIED)


async def _refuse(send: Send, status_code: int, text: str) -> None:
    body = msgspec.json.encode({"error": {"message": text}})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"retry-after", b"1")] if status_code == 429 else []
    await send({"type": "http.response.start", "status": status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _reset(receive: Receive) -> None:
    """Closes the connection so that the peer gets RST. ASGI has no word for it: uvicorn's own object is asked."""
    transport: Any = receive.__self__.transport  # type: ignore[attr-defined]
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _log_file(log: DialectLog) -> Path | None:
    """Where standard error goes, if that is a file."""
    if stat.S_ISREG(os.fstat(2).st_mode):
        return Path("/proc/self/fd/2").readlink()
    log.warning("SIMULATED: the log is no file, so this fault can't be committed")
    return None


def _delete(log: DialectLog) -> None:
    if path := _log_file(log):
        path.unlink(missing_ok=True)


def _rotate(log: DialectLog) -> None:
    if path := _log_file(log):
        path.rename(path.with_name(path.name + ".1"))
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in STREAMS:
            os.dup2(fresh, stream)
        os.close(fresh)


def _truncate(log: DialectLog) -> None:
    if _log_file(log):
        os.ftruncate(2, 0)


LOG_FAULTS: Final = {"log_deleted": _delete, "log_rotated": _rotate, "log_truncated": _truncate}
assert set(LOG_FAULTS) | set(STATUS) <= set(FAULTS)
