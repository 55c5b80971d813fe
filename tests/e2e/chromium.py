"""A headless Chromium, driven over its debugging pipe: no driver, no socket, nothing downloaded."""

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

PROGRAM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: apt-get install chromium")

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--disable-breakpad",
)
TIMEOUT_S: Final = 60


class Chromium:
    """One page. `events` holds all that the browser said of it."""

    def __init__(self, to_fd: int, from_fd: int) -> None:
        self._to, self._from = to_fd, os.fdopen(from_fd, "rb")
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of one command; what comes before it is kept in `events`."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        raw = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "Chromium ended"
            raw += byte
        message: dict[str, Any] = json.loads(raw)
        if "method" in message:
            self.events.append(message)
        return message

    def wait_for(self, method: str) -> None:
        """Until the browser tells of it."""
        while not any(one["method"] == method for one in self.events):
            self._read()

    def show(self, page: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Opens a file in a window of this size, and waits until it is there."""
        self.events.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """One key, down and up."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def close(self) -> None:
        """Our end of the pipe."""
        self._from.close()

    @property
    def complaints(self) -> list[str]:
        """Errors, exceptions and breaches of the content policy."""
        told = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(one["params"]) for one in self.events if one["method"] in told]

    @property
    def requests(self) -> list[str]:
        """What the page asked for."""
        sent = (one["params"]["request"]["url"] for one in self.events if one["method"] == "Network.requestWillBeSent")
        return [url for url in sent if not url.startswith("data:")]


@contextmanager
def chromium(profile: Path) -> Iterator[Chromium]:
    """Ended by its pid, with all that it started."""
    assert PROGRAM is not None
    browser_in, ours_out = os.pipe()
    ours_in, browser_out = os.pipe()

    def as_three_and_four() -> None:
        low, high = os.dup(browser_in), os.dup(browser_out)
        os.dup2(low, 3)
        os.dup2(high, 4)

    process = subprocess.Popen(
        [PROGRAM, *FLAGS, f"--user-data-dir={profile}"],
        preexec_fn=as_three_and_four,
        pass_fds=(3, 4, browser_in, browser_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(browser_in)
    os.close(browser_out)
    page: Chromium | None = None
    try:
        page = Chromium(ours_out, ours_in)
        yield page
        page.call("Browser.close")
    finally:
        os.close(ours_out)
        try:
            process.wait(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if page is not None:
            page.close()
