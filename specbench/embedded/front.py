"""The HTTP front in SGLang's dialect, behind which an engine works. Each step's tokens leave as one chunk."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specbench.dialects.sglang_version import NEW_INFO_NAMES
from specbench.dialects.sglang_version import parse as parse_version
from specbench.embedded.answers import ChatEvents, Events, GenerateEvents, Tally, api_error
from specbench.embedded.bodies import chat_body, generate_body
from specbench.embedded.dialect import DialectLog
from specbench.embedded.interface import Backend, EngineFailed, GenerateRequest, RequestRefused
from specbench.embedded.status import metrics_text, server_info

SIMULATED_HEADER = (b"x-specbench-simulated", b"SIMULATED")
BODY_LIMIT_BYTES = 8 << 20
CLIENT_GONE = 499
"""Seen in the access log only: nobody is there to read it."""
Result = TypeVar("Result")


class Front:
    """The endpoints. `closing` is set while the server drains: `/health` says so."""

    def __init__(self, backend: Backend, log: DialectLog, *, metrics: bool, api_key: str | None) -> None:
        self._backend = backend
        self._log = log
        self._metrics = metrics
        self._api_key = api_key
        self.closing = False
        self.ready = False
        version = parse_version(backend.facts.dialect_version)
        self._new_names = version is None or version >= NEW_INFO_NAMES

    def app(self) -> ASGIApp:
        """The ASGI application, marked SIMULATED in every answer where it is."""
        both = ["GET", "POST"]
        routes = [
            Route("/generate", self.generate, methods=["POST", "PUT"]),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/health", self.health),
            Route("/health_generate", self.health),
            Route("/get_server_info", self.old_server_info),
            Route("/get_model_info", self.model_info),
            Route("/flush_cache", self.flush, methods=both),
        ]
        if self._new_names:
            routes += [Route("/server_info", self.server_info), Route("/model_info", self.model_info)]
        if self._metrics:
            routes.append(Route("/metrics", self.metrics))
        app: ASGIApp = Starlette(routes=routes)
        return _marked(app) if self._backend.facts.simulated else app

    # -- answers -------------------------------------------------------------------------------------------

    async def generate(self, request: Request) -> Response:
        return await self._answer(request, generate_body, lambda tally, body: GenerateEvents(tally), _plain_error)

    async def chat(self, request: Request) -> Response:
        facts = self._backend.facts
        return await self._answer(request, chat_body, lambda tally, body: ChatEvents(tally, facts, body), api_error)

    async def _answer(
        self,
        request: Request,
        read: Callable[[Mapping[str, Any], str], GenerateRequest],
        events_of: Callable[[Tally, dict[str, Any]], Events],
        error_of: Callable[[str, int], dict[str, Any]],
    ) -> Response:
        if not self._allowed(request):
            return _json({"error": "Unauthorized"}, 401)
        request_id = uuid.uuid4().hex
        try:
            body = await _body(request)
            wanted = read(body, request_id)
            outputs = self._backend.generate(wanted)
            first = await _while_connected(request, anext(outputs))  # it may wait in the queue for long
        except RequestRefused as refusal:
            return _json(error_of(str(refusal), 400), 400)
        except (EngineFailed, StopAsyncIteration) as failure:
            return _json(error_of(str(failure) or "the engine gave no output", 500), 500)
        if first is None:
            return Response(status_code=CLIENT_GONE)
        events = events_of(Tally(request_id, self._backend.facts), body)
        if body.get("stream") is True:
            return StreamingResponse(_stream(events, first, outputs), media_type="text/event-stream")
        whole = await _while_connected(request, _whole(events, first, outputs, error_of))
        return whole or Response(status_code=CLIENT_GONE)

    # -- what the server says of itself --------------------------------------------------------------------

    async def models(self, request: Request) -> Response:
        facts = self._backend.facts
        card = {
            "id": facts.served_model_name,
            "object": "model",
            "owned_by": "sglang",
            "root": facts.model_path,
            "max_model_len": facts.context_length,
        }
        return _json({"object": "list", "data": [card]})

    async def health(self, request: Request) -> Response:
        """Unlike SGLang's it generates nothing, so that asking disturbs no measurement."""
        return Response(status_code=200 if self.ready and not self.closing else 503)

    async def model_info(self, request: Request) -> Response:
        facts = self._backend.facts
        return _json({"model_path": facts.model_path, "tokenizer_path": facts.model_path, "is_generation": True})

    async def old_server_info(self, request: Request) -> Response:
        if self._new_names:
            self._log.warning("Endpoint '/get_server_info' is deprecated. Please use '/server_info' instead.")
        return await self.server_info(request)

    async def server_info(self, request: Request) -> Response:
        return _json(server_info(self._backend.facts, self._log))

    async def metrics(self, request: Request) -> Response:
        return Response(metrics_text(self._backend, self._log), media_type="text/plain; version=0.0.4")

    async def flush(self, request: Request) -> Response:
        """Refused while requests run or wait, as SGLang refuses it."""
        running, queued = self._backend.running_requests, self._backend.queue_requests
        if running or queued:
            self._log.flush_refused(running, queued)
            return Response("Cache not flushed: requests are pending.\n", status_code=400)
        await self._backend.flush()
        self._log.flushed()
        return Response("Cache flushed.\n")

    def _allowed(self, request: Request) -> bool:
        return not self._api_key or request.headers.get("authorization") == f"Bearer {self._api_key}"


async def _body(request: Request) -> dict[str, Any]:
    raw = await request.body()
    if len(raw) > BODY_LIMIT_BYTES:
        raise RequestRefused(f"a body of {len(raw)} bytes is over the limit of {BODY_LIMIT_BYTES}")
    try:
        body = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise RequestRefused(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise RequestRefused("the body must be a JSON object")
    return body


async def _while_connected(request: Request, work: Awaitable[Result]) -> Result | None:
    """The result; None when the client goes away before: then the work is cancelled, and the engine drops the request."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # the body is read: what comes now is the end of the connection
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        leaving.cancel()
        working.cancel()


async def _stream(events: Events, first: Any, outputs: AsyncGenerator[Any, None]) -> AsyncGenerator[bytes, None]:
    """When the client goes away this is closed, and the request with it."""
    async with aclosing(outputs):
        try:
            if chunk := events.step(first):
                yield chunk
            async for output in outputs:
                if chunk := events.step(output):
                    yield chunk
            yield events.end()
        except EngineFailed as failure:
            yield events.failure(str(failure))


async def _whole(
    events: Events, first: Any, outputs: AsyncGenerator[Any, None], error_of: Callable[[str, int], dict[str, Any]]
) -> Response:
    async with aclosing(outputs):
        events.step(first)
        try:
            async for output in outputs:
                events.step(output)
        except EngineFailed as failure:
            return _json(error_of(str(failure), 500), 500)
    return _json(events.whole())


def _plain_error(message: str, status_code: int) -> dict[str, Any]:
    """`/generate`'s shape."""
    return {"error": {"message": message}}


def _json(value: Any, status_code: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status_code, media_type="application/json")


def _marked(app: ASGIApp) -> ASGIApp:
    """Adds the SIMULATED header to every answer."""

    async def marked(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), SIMULATED_HEADER]
            await send(message)

        await app(scope, receive, send_marked)

    return marked
