"""A long fuzz of the load client, by hand: `python tests/bench/fuzz.py --seconds 600 [--seed N]` prints figures.

A server of its own takes good answers and spoils them: bytes changed, lost, doubled or put in, cut off, split anywhere, sent
slowly or all at once, reset, or answered before the request was sent whole. Each request must end as one record. A record
without an error must be true: as many tokens and the text that the server meant, unless the spoiling made another valid
answer of it (a changed letter inside a text or a number); those are counted apart.
"""

import argparse
import asyncio
import collections
import json
import random
import socket
import struct
import sys
import time
from collections.abc import Callable

from specbench import engines
from specbench.datasets import Prompt
from specbench.execution.client import open_client
from specbench.execution.load import Level, Load, Target
from specbench.records import RequestRecord
from specbench.suite import Workload

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAMS = 128
BATCH = 1024
TIMEOUT_S = 1.0


def good(dice: random.Random) -> tuple[bytes, int, str]:
    """A whole answer, its tokens and its text."""
    total, text, pieces = 0, "", []
    line_end = dice.choice((b"\n", b"\n", b"\r\n"))
    space = dice.choice((b" ", b" ", b""))
    for index in range(dice.randint(1, 12)):
        total += dice.randint(1, 4)
        word = f"w{index} "
        text += word
        choices = [{"index": 0, "delta": {"content": word}, "finish_reason": None}]
        pieces.append(json.dumps({"choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": total}}).encode())
        if dice.random() < 0.1:
            pieces.append(b":")
    pieces.append(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).encode())
    pieces.append(b"[DONE]")
    body = [(b": keep-alive" if one == b":" else b"data:" + space + one) + 2 * line_end for one in pieces]
    return HEAD + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in body) + b"0\r\n\r\n", total, text


def status(dice: random.Random) -> bytes:
    """An error with some body."""
    code = dice.choice((400, 404, 429, 500, 503))
    body = dice.choice((b'{"error": {"message": "busy"}}', b"<html>", b"", b"[" * 2000))
    return b"HTTP/1.1 %d X\r\nRetry-After: 3\r\nContent-Length: %d\r\n\r\n%b" % (code, len(body), body)


SPOIL: dict[str, Callable[[bytes, int, random.Random], bytes]] = {
    "none": lambda data, at, dice: data,
    "flip": lambda data, at, dice: data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :],
    "drop": lambda data, at, dice: data[:at] + data[at + dice.randint(1, 40) :],
    "double": lambda data, at, dice: data[: at + dice.randint(1, 40)] + data[at:],
    "insert": lambda data, at, dice: data[:at] + dice.randbytes(dice.randint(1, 40)) + data[at:],
    "cut": lambda data, at, dice: data[:at],
    "garbage": lambda data, at, dice: dice.randbytes(dice.randint(0, 300)),
    "status": lambda data, at, dice: status(dice),
    "gzip": lambda data, at, dice: data.replace(b"Content-Type", b"Content-Encoding: gzip\r\nContent-Type", 1),
    "length": lambda data, at, dice: data.replace(
        b"Transfer-Encoding: chunked", b"Content-Length: %d" % dice.randrange(5000), 1
    ),
}


class Spoiler:
    """The server. `meant` holds what each request, by its prompt's name, should have given."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.meant: dict[str, tuple[str, int, str]] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                early = self.dice.random() < 0.02
                body = b"" if early else await reader.readexactly(length)
                name = "early" if early else json.loads(body)["messages"][-1]["content"]
                await self.send(writer, name)
                if early:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def send(self, writer: asyncio.StreamWriter, name: str) -> None:
        data, tokens, text = good(self.dice)
        kind = self.dice.choice(tuple(SPOIL))
        spoilt = SPOIL[kind](data, self.dice.randrange(len(data)), self.dice)
        self.meant[name] = (kind, tokens, text)
        pieces = self.dice.choice((1, 1, 2, 5, 30))
        cuts = sorted(self.dice.randrange(len(spoilt) + 1) for _ in range(pieces - 1))
        for begin, end in zip([0, *cuts], [*cuts, len(spoilt)], strict=True):
            writer.write(spoilt[begin:end])
            await writer.drain()
            await asyncio.sleep(self.dice.choice((0, 0, 0, 0.001)))
        if kind in ("cut", "garbage", "drop", "length") and self.dice.random() < 0.8:
            if self.dice.random() < 0.5:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            raise ConnectionError


async def batch(url: str, round_index: int, counts: collections.Counter[str], spoiler: Spoiler) -> None:
    records: list[RequestRecord] = []
    prompts = tuple(Prompt(id=f"{round_index}-{n}", category="c", turns=(f"{round_index}-{n}",)) for n in range(BATCH))
    level = Level(workload=Workload(name="w", timeout_s=TIMEOUT_S), concurrency=STREAMS, prompts=prompts)
    async with open_client(url) as client:
        target = Target(engine=engines.get("external"), client=client, served_model="m", version=None, zero_s=0.0)
        await Load(target, records.append).drive(level)
    if sorted(one.prompt_id for one in records) != sorted(one.id for one in prompts):
        raise SystemExit(f"round {round_index}: {len(records)} records of {BATCH} requests")
    for record in records:
        counts[judged(record, spoiler)] += 1


def judged(record: RequestRecord, spoiler: Spoiler) -> str:
    kind, tokens, text = spoiler.meant.pop(record.prompt_id, ("early", 0, ""))
    if kind == "early":
        return "answered before its request was read: " + ("failed" if record.error else "read")
    if record.error:
        return f"failed as it should: {kind}" if kind != "none" else f"FAILED ALTHOUGH GOOD: {record.error[:60]}"
    if (record.output_tokens, record.output_text) == (tokens, text):
        return "good" if kind == "none" else f"spoilt where it does not matter: {kind}"
    if kind in ("flip", "drop", "double", "insert"):
        return f"another valid answer: {kind}"
    return f"SILENTLY WRONG: {kind}"


async def run(seconds: float, seed: int) -> collections.Counter[str]:
    spoiler = Spoiler(seed)
    server = await asyncio.start_server(spoiler.answer, "127.0.0.1", 0, backlog=1024)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    counts: collections.Counter[str] = collections.Counter()
    end, round_index = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await batch(url, round_index, counts, spoiler)
        round_index += 1
    server.close()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts = asyncio.run(run(arguments.seconds, arguments.seed))
    for name, count in sorted(counts.items(), key=lambda one: -one[1]):
        sys.stdout.write(f"{count:>9}  {name}\n")
    sys.stdout.write(f"{counts.total():>9}  requests, a record each\n")
    raise SystemExit(any(name.isupper() or name.split(":")[0].isupper() for name in counts))


if __name__ == "__main__":
    main()
