"""A live server process with the simulated engine in it, for the contract tests of the front."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

DRAFTER = "drafters/some-eagle3"
SPECULATION = (
    *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", DRAFTER),
    *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
)
COSTS = {"load_s": 0.0, "base_step_s": 0.005, "prefill_s": 0.002, "draft_step_s": 0.0005}
SLOW = {"base_step_s": 0.1}
START_LIMIT_S = 20.0
END_LIMIT_S = 10.0
GENERATE = {"text": "Write a Python function that adds two numbers.", "sampling_params": {"max_new_tokens": 24}}
LONG = GENERATE | {"sampling_params": {"max_new_tokens": 5000}}
CHAT = {"model": "any", "messages": [{"role": "user", "content": "Why is the sky blue?"}], "max_tokens": 24}


class Live:
    """A server process and a client to it."""

    def __init__(self, folder: Path, flags: tuple[str, ...], costs: dict[str, Any]) -> None:
        self.log_path, self.access_path = folder / "stderr", folder / "stdout"
        told = {"rehearsal": COSTS | costs, "drafters": {DRAFTER: {"name": "some", "method": "eagle3"}}, "seed": 3}
        argv = [sys.executable, "-m", "specbench.embedded.simulated", "--model-path", "kimi", "--port", "0", *flags]
        with self.log_path.open("w") as log, self.access_path.open("w") as access:
            env = os.environ | {"SPECBENCH_SIMULATION": json.dumps(told)}
            self.process = subprocess.Popen(argv, stdout=access, stderr=log, env=env, start_new_session=True)
        self.until(lambda: "ready to roll" in self.log, START_LIMIT_S)
        found = re.search(r"Uvicorn running on (http://\S+)", self.log)
        assert found is not None, self.log
        self.client = httpx.Client(base_url=found.group(1), timeout=30, trust_env=False)

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def until(self, done: Callable[[], bool], limit_s: float = END_LIMIT_S) -> None:
        end_s = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end_s, self.log
            time.sleep(0.01)

    def events(self, path: str, body: dict[str, Any]) -> list[bytes]:
        """The payloads of a streamed answer, `[DONE]` proved and taken off."""
        answer = self.client.post(path, json=body | {"stream": True})
        assert answer.status_code == 200, answer.text
        *events, done = [event.removeprefix(b"data: ") for event in answer.content.split(b"\n\n") if event]
        assert done == b"[DONE]"
        return events

    def gauge(self, name: str) -> float:
        text = self.client.get("/metrics").text
        found = re.search(rf"^sglang:{name}\{{.*\}} ([\d.]+)$", text, re.M)
        assert found is not None, text
        return float(found.group(1))

    def running(self) -> float:
        return self.gauge("num_running_reqs")

    def sent(self, body: dict[str, Any]) -> socket.socket:
        """A request whose answer nobody reads; closing the socket is going away."""
        data, url = json.dumps(body).encode(), self.client.base_url
        connection = socket.create_connection((url.host, url.port))
        head = f"POST /generate HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)
        return connection

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.client.get("/server_info").json()["internal_states"][0]
        return state

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_LIMIT_S)


Start = Callable[..., Live]
"""Flags as words, costs by name."""
