"""A real OpenVINO server as the harness starts it, a client that reads it as the harness does, and the reference."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
from msgspec import structs

from specbench import clock, engines, models
from specbench.dialects import ChunkFacts, Message
from specbench.engines import Launch
from specbench.plan import Slot
from specbench.suite import Drafter, Model, Server, Speculation, Variant, Workload

ENGINE = engines.get("openvino")
TARGET, GOOD, WEAK = (f"specbench:smollm2-135m-{name}" for name in ("f16", "q4", "pruned"))
PROMPTS = (
    "Count from 1 to 60, separated by commas.",
    "Write a short story about a lighthouse keeper who finds a letter.",
    "Write a Python function that returns the factorial of n, with a docstring.",
    "Répondez en français, avec des accents et trois emojis : que mange un hérisson ?",
)
LOAD = Workload(name="e2e", max_output_tokens=48)

REFERENCE = """
import json, sys
import openvino_genai as genai
ask = json.load(sys.stdin)
extra = {}
if ask["drafter"]:
    extra["draft_model"] = genai.draft_model(ask["drafter"], "CPU")
elif ask["ngram"]:
    extra["prompt_lookup"] = True
pipeline = genai.LLMPipeline(ask["model"], "CPU", **extra)
for prompt in ask["prompts"]:
    config = pipeline.get_generation_config()
    config.max_new_tokens = ask["max_tokens"]
    config.do_sample = False
    if ask["proposed_tokens"]:
        config.num_assistant_tokens = ask["proposed_tokens"]
    if ask["ngram"]:
        config.max_ngram_size = ask["ngram"]
    result = pipeline.generate([prompt], config)
    counted = result.extended_perf_metrics
    print(json.dumps({
        "text": result.texts[0],
        "prompt_tokens": result.perf_metrics.get_num_input_tokens(),
        "steps": list(result.perf_metrics.raw_metrics.m_batch_sizes),
        "accepted_tokens": counted.get_num_accepted_tokens() if counted else None,
        "proposed_tokens": counted.get_num_draft_tokens() if counted else None,
    }))
"""


class Case(NamedTuple):
    """A variant and its drafter."""

    variant: Variant
    drafter: str | None = None
    lengths: tuple[float, float] | None = None
    """Between these its acceptance length must lie for the quickstart to tell its story."""


def case(name: str, draft_tokens: int = 0, drafter: str | None = None) -> Case:
    speculation = None
    if draft_tokens:
        speculation = Speculation(draft_tokens=draft_tokens, drafter=name if drafter else None, ngram=None if drafter else 3)
    return Case(Variant(name=name, engine="openvino", speculation=speculation, server=Server()), drafter)


CASES = (
    case("baseline"),
    case("good", 5, GOOD)._replace(lengths=(2.0, 5.0)),
    case("weak", 4, WEAK)._replace(lengths=(1.0, 1.5)),
    case("lookup", 6),
)


class Running(NamedTuple):
    """A server that was launched; its client."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    log: Path

    @property
    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def worker(self) -> psutil.Process:
        """The process that holds the pipeline."""
        (found,) = psutil.Process(self.process.pid).children()
        return found


class Answer(NamedTuple):
    """One streamed answer as the harness reads it."""

    text: str
    steps: list[int]
    """Tokens of each chunk."""
    last: ChunkFacts


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def launch(one: Case, log: Path, model: str = TARGET) -> Running:
    """Started as the harness starts it; returns at once."""
    port = free_port()
    drafter = Drafter(path=one.drafter) if one.drafter else None
    what = Launch(model=Model(path=model), drafter=drafter, variant=one.variant, slot=Slot(port=port))
    with log.open("wb") as stream:
        process = subprocess.Popen(ENGINE.command(what).argv, stdout=stream, stderr=stream, start_new_session=True)
    return Running(process, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60), log)


def wait_ready(running: Running, limit_s: float = 60.0) -> None:
    until_s = clock.now_s() + limit_s
    while not any(ENGINE.ready_line(ENGINE.parse_log_line(line)) for line in running.lines):
        assert running.process.poll() is None, running.lines[-20:]
        assert clock.now_s() < until_s, running.lines[-20:]
        time.sleep(0.05)


@contextmanager
def served(one: Case, log: Path) -> Iterator[Running]:
    running = launch(one, log)
    try:
        wait_ready(running)
        yield running
    finally:
        running.client.close()
        with suppress(ProcessLookupError):
            os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait()


def facts(running: Running, prompt: str, workload: Workload) -> Generator[ChunkFacts]:
    """The events of one streamed answer. Closing it hangs up."""
    request = ENGINE.request([Message(role="user", content=prompt)], workload, "m", None)
    reader = ENGINE.event_reader(workload)
    with running.client.stream("POST", request.path, json=request.body) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line.startswith("data:") and line != "data: [DONE]":
                yield reader.read(line.removeprefix("data:").strip().encode())


def ask(running: Running, prompt: str, workload: Workload = LOAD) -> Answer:
    text, totals = "", [0]
    last: dict[str, Any] = {}
    for one in facts(running, prompt, workload):
        assert one.error is None
        text += one.text
        if one.output_tokens is not None and one.output_tokens > totals[-1]:
            totals.append(one.output_tokens)
        last.update({name: value for name, value in structs.asdict(one).items() if value not in (None, ())})
    return Answer(text, [after - before for before, after in pairwise(totals)], ChunkFacts(**last))


def reference(one: Case) -> list[dict[str, Any]]:
    """What OpenVINO GenAI itself says of the same prompts."""
    speculation = one.variant.speculation
    question = {
        "model": str(models.folder_of(TARGET)),
        "drafter": str(models.folder_of(one.drafter)) if one.drafter else None,
        "proposed_tokens": speculation.proposed_tokens if speculation else 0,
        "ngram": (speculation.ngram or 0) if speculation else 0,
        "max_tokens": LOAD.max_output_tokens,
        "prompts": PROMPTS,
    }
    done = subprocess.run(
        (sys.executable, "-c", REFERENCE), input=json.dumps(question), capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
