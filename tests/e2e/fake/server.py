"""The fake engine's process: streams two tokens a step, and misbehaves as it is told."""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"

DAEMON = f"import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); {SLEEPER}"
"""Twice forked in a session of its own: nobody's child and in nobody's group."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--start-s", type=float, default=0.0)
    parser.add_argument("--step-s", type=float, default=0.002)
    parser.add_argument("--die-loading", action="store_true")
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--refuse", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--daemon", action="store_true")
    parser.add_argument("--api-key")
    parser.add_argument("--leak", action="store_true", help="prints and answers what it must not")
    parser.add_argument("--at-request", nargs=3, metavar=("N", "FILE", "TEXT"), help="writes TEXT to FILE then")
    return parser.parse_args()


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Server:
    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.request_count = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self.one(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def one(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path, _ = head.split(b" ", 2)
        length = next((int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")), 0)
        body = await reader.readexactly(length)
        key = self.chosen.api_key
        if key and f"authorization: bearer {key}".lower().encode() not in head.lower():
            self.json(writer, {"error": "Unauthorized"}, b"401 Unauthorized")
            return
        if path == b"/v1/models":
            self.json(writer, {"data": [{"id": "fake-model"}]})
        elif path == b"/server_info":
            self.json(writer, {"max_running_requests": 7, "api_key": key})
        elif path == b"/flush_cache" and method == b"POST":
            self.json(writer, {})
        elif self.chosen.refuse:
            self.json(writer, {"error": {"message": "no room"}}, b"503 Busy")
        else:
            await self.chat(writer, json.loads(body))
        await writer.drain()

    def json(self, writer: asyncio.StreamWriter, value: object, status: bytes = b"200 OK") -> None:
        body = json.dumps(value).encode()
        writer.write(b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body))

    async def chat(self, writer: asyncio.StreamWriter, request: dict[str, int]) -> None:
        self.request_count += 1
        if self.request_count == self.chosen.die_after:
            say("RuntimeError: lost under load")
            sys.exit(3)
        if self.request_count == int((self.chosen.at_request or ["0"])[0]):
            Path(self.chosen.at_request[1]).write_text(self.chosen.at_request[2])  # noqa: ASYNC240
        if self.chosen.leak and self.request_count == 4:
            self.json(writer, {"error": {"message": f"no access with {secrets()}"}}, b"500 Internal Server Error")
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        wanted = request["max_tokens"]
        for total in range(2, wanted + 2, 2):
            await asyncio.sleep(self.chosen.step_s)
            self.event(writer, {"delta": {"content": f"{secrets()} " if self.chosen.leak else "ab "}}, min(total, wanted))
            await writer.drain()
        self.event(writer, {"delta": {}, "finish_reason": "length"}, wanted)
        self.piece(writer, b"data: [DONE]\n\n")
        self.piece(writer, b"")

    def event(self, writer: asyncio.StreamWriter, choice: dict[str, object], total: int) -> None:
        usage = {"prompt_tokens": 5, "completion_tokens": total}
        self.piece(writer, b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n")

    def piece(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def secrets() -> str:
    return " ".join(
        [*sys.argv, *(value for name, value in os.environ.items() if name.startswith(("HF_", "MINE", "SHELL_")))]
    )


def load(chosen: argparse.Namespace) -> None:
    say("[2026-01-01 00:00:00] Load weight begin. avail mem=1.00 GB")
    if chosen.leak:
        say(f"[2026-01-01 00:00:00] server_args=ServerArgs({secrets()})")
    if chosen.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for alone in (False, True):
            child = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=alone)
            say(f"child {child.pid}")
    if chosen.daemon:
        subprocess.run([sys.executable, "-c", DAEMON], check=True)
    if chosen.die_loading:
        for count in range(30):
            say(f"line {count}")
        say("RuntimeError: Not enough memory")
        say("after the cause")
        sys.exit(3)


async def main(chosen: argparse.Namespace) -> None:
    await asyncio.sleep(chosen.start_s)
    server = await asyncio.start_server(Server(chosen).answer, "127.0.0.1", chosen.port)
    say("[2026-01-01 00:00:01] The server is fired up and ready to roll!")
    await server.serve_forever()


CHOSEN = options()
load(CHOSEN)
asyncio.run(main(CHOSEN))
