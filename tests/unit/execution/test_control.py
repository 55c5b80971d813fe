"""A server's side doors: what a cache flush says of a server that is busy, done, or has no such door."""

import asyncio

import httpx
import pytest

from specbench.engines import Endpoints
from specbench.execution import control
from specbench.execution.control import Control


def flushed(codes: list[int], paths: tuple[str, ...] = ("/flush",)) -> tuple[bool | None, list[str]]:
    """What `flush` says of a server that answers with these codes in turn, the last for ever, and what it was asked."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(codes[min(len(asked), len(codes)) - 1])

    async def ask() -> bool | None:
        side = Control("http://127.0.0.1:9", Endpoints(flush=paths), httpx.MockTransport(answer))
        try:
            return await side.flush()
        finally:
            await side.close()

    return asyncio.run(ask()), asked


def test_a_busy_server_is_asked_again() -> None:
    assert flushed([503, 200]) == (True, ["/flush", "/flush"])


def test_no_such_door_is_not_waited_for() -> None:
    assert flushed([404]) == (None, ["/flush"])
    assert flushed([404, 404], ("/one", "/two")) == (None, ["/one", "/two"])


def test_a_server_that_stays_busy_was_not_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "FLUSH_RETRY_S", 0.0)
    assert flushed([400])[0] is False


def test_an_engine_without_one() -> None:
    assert flushed([200], ()) == (None, [])
