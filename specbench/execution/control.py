"""What is asked of a server beside the load: is it there, what did it resolve, empty your cache."""

import asyncio
from typing import Any

import httpx

from specbench import clock
from specbench.dialects.metrics import parse_metrics
from specbench.engines import Endpoints
from specbench.execution.client import open_client
from specbench.units import Second

ASK_TIMEOUT_S = 10.0
FLUSH_RETRY_S = 5.0
TROUBLE = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, RuntimeError)


class Control:
    """A server's side doors. Has a client of its own, so that it never waits behind the load."""

    def __init__(
        self,
        base_url: str,
        endpoints: Endpoints,
        transport: httpx.AsyncBaseTransport | None = None,
        api_key: str | None = None,
    ) -> None:
        self._client = open_client(base_url, transport, api_key)
        self._endpoints = endpoints
        self._without_metrics = False

    async def answers(self, timeout_s: Second = 2.0) -> bool:
        """Whether one of the ready paths answers 200."""
        for path in self._endpoints.ready:
            response = await self._ask("GET", path, timeout_s)
            if response is not None and response.status_code == 200:
                return True
        return False

    async def served_model(self) -> str | None:
        """The first model that `/v1/models` lists."""
        found = await self._json(("/v1/models",))
        models = found.get("data") if isinstance(found, dict) else None
        first = models[0] if isinstance(models, list) and models else None
        return first["id"] if isinstance(first, dict) and isinstance(first.get("id"), str) else None

    async def server_info(self) -> dict[str, Any] | None:
        """What the server says of itself; None when it has no such path or does not answer."""
        found = await self._json(self._endpoints.server_info)
        return found if isinstance(found, dict) else None

    async def metrics(self) -> dict[str, float]:
        """Its counters of speculation; empty when it has no such path, which is not asked again then."""
        path = self._endpoints.metrics
        if path is None or self._without_metrics:
            return {}
        response = await self._ask("GET", path, ASK_TIMEOUT_S)
        if response is None or response.status_code != 200:
            self._without_metrics = response is not None
            return {}
        return parse_metrics(response.text)

    async def flush(self) -> bool | None:
        """Empties the prefix cache, retrying while the server is busy. None: the server has no way to."""
        if not self._endpoints.flush:
            return None
        give_up_s = clock.now_s() + FLUSH_RETRY_S
        while True:
            flushed = await self._flush_once()
            if flushed is not False or clock.now_s() > give_up_s:
                return flushed
            await asyncio.sleep(0.1)

    async def _flush_once(self) -> bool | None:
        """None where every path is unknown to the server: waiting would not help."""
        codes = []
        for path in self._endpoints.flush:
            response = await self._ask("POST", path, ASK_TIMEOUT_S)
            codes.append(response.status_code if response is not None else 0)
            if codes[-1] == 200:
                return True
        return None if set(codes) == {404} else False

    async def _json(self, paths: tuple[str, ...]) -> Any:
        for path in paths:
            response = await self._ask("GET", path, ASK_TIMEOUT_S)
            if response is not None and response.status_code == 200:
                try:
                    return response.json()
                except ValueError:
                    continue
        return None

    async def _ask(self, method: str, path: str, timeout_s: Second) -> httpx.Response | None:
        try:
            return await self._client.request(method, path, timeout=timeout_s)
        except TROUBLE:
            return None

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()
