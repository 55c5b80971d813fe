"""Tells a webhook of a night. Its URL is a secret: it is neither stored nor printed, not even when the webhook fails."""

import threading
from typing import Final
from urllib.parse import urlsplit

from specbench.errors import SpecbenchError

TIMEOUT_S: Final = 10.0


class Webhook:
    """Where to tell. Raises SpecbenchError when that is no address of the web, without repeating it."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self.host = parts.hostname or ""
        except ValueError:
            self.host = ""
        if not self.host or parts.scheme not in ("http", "https"):
            raise SpecbenchError("--webhook: that is no address of a webhook; write https://HOST/PATH")
        self._url = url

    def __repr__(self) -> str:
        return f"Webhook({self.host})"

    def tell(self, body: str, timeout_s: float = TIMEOUT_S) -> str | None:
        """Posts JSON, once, following no redirect. None when it was taken; else a sentence why not.

        `timeout_s` is for all of it: a host that answers byte by byte would keep httpx's own limits from ever being reached.
        """
        import httpx  # noqa: F401  takes its time, which is not the webhook's

        told: list[str | None] = []
        telling = threading.Thread(target=lambda: told.append(self._post(body, timeout_s)), daemon=True)
        telling.start()
        telling.join(timeout_s)
        return told[0] if told else self._late(timeout_s)

    def _late(self, timeout_s: float) -> str:
        return f"the webhook at {self.host} did not answer within {timeout_s:g} s"

    def _post(self, body: str, timeout_s: float) -> str | None:
        import httpx

        try:
            with httpx.Client(timeout=timeout_s, follow_redirects=False, trust_env=True) as client:
                answer = client.post(self._url, content=body.encode(), headers={"content-type": "application/json"})
        except httpx.TimeoutException:
            return self._late(timeout_s)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return f"the webhook at {self.host} can't be reached ({type(error).__name__})"
        if answer.is_success:
            return None
        return f"the webhook at {self.host} answered {answer.status_code}"
