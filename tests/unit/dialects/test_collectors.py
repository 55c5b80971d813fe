"""Whatever gathers logs writes something around each line: every engine's figures are read all the same."""

import json
from collections.abc import Callable
from typing import Final

import pytest

from specbench.analysis.log_report import study
from specbench.dialects.detect import Engine

SGLANG: Final = [
    f"[2026-11-01 10:00:0{second} DP1 PP0 TP3] Decode batch, #running-req: 4, #token: 812, token usage: 0.02, "
    "accept len: 2.50, accept rate: 0.83, cuda graph: True, gen throughput (token/s): 180.20, #queue-req: 0, "
    for second in range(5)
]
VLLM: Final = [
    f"INFO 11-29 14:11:1{second} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: "
    "8.50 tokens/s, Drafted throughput: 17.00 tokens/s, Accepted: 90 tokens, Drafted: 180 tokens, Per-position acceptance "
    "rate: 0.700, 0.450, 0.350, Avg Draft acceptance rate: 50.0%"
    for second in range(5)
]
LLAMA: Final = [
    line
    for task in range(5)
    for line in (
        f"slot print_timing: id  0 | task {task} | prompt eval time =      12.00 ms /    10 tokens (    1.20 ms per token, "
        "  833.33 tokens per second)",
        "       eval time =    1000.00 ms /   100 tokens (   10.00 ms per token,   100.00 tokens per second)",
        "      total time =    1012.00 ms /   110 tokens",
        "draft acceptance rate = 0.60000 (   60 accepted /   100 generated)",
    )
]
LOGS: Final[dict[Engine, list[str]]] = {"sglang": SGLANG, "vllm": VLLM, "llamacpp": LLAMA}
WRAPS: Final[dict[str, Callable[[str, int], str]]] = {
    "nothing": lambda line, at: line,
    "kubernetes cri": lambda line, at: f"2026-11-01T10:00:0{at % 10}.123456789Z stderr F {line}",
    "docker json": lambda line, at: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-01T10:00:00.1Z"}),
    "compose": lambda line, at: f"sglang-server-1  | {line}",
    "compose, colours": lambda line, at: f"\x1b[36msglang-1  |\x1b[0m {line}",
    "journald short": lambda line, at: f"Nov 01 10:00:0{at % 10} gpu01 python3[12345]: {line}",
    "journald iso": lambda line, at: f"2026-11-01T10:00:00+0000 gpu01.example.com sglang[12345]: {line}",
    "journald json": lambda line, at: json.dumps({"_PID": "12", "MESSAGE": line, "PRIORITY": "6"}),
    "journald json, bytes": lambda line, at: json.dumps({"MESSAGE": list(f"\x1b[0m{line}".encode())}),
    "ray": lambda line, at: f"\x1b[36m(RayWorkerWrapper pid=1234, ip=10.0.0.2)\x1b[0m {line}",
    "ray, repeated": lambda line, at: f"(W pid=1) {line} [repeated 3x across cluster] (Ray deduplicates logs by default.)",
    "srun --label": lambda line, at: f"{at % 4}: {line}",
    "mpirun --tag-output": lambda line, at: f"[1,0]<stderr>: {line}",
    "ts": lambda line, at: f"[2026-11-01 10:00:0{at % 10}] {line}",
    "kubectl --prefix": lambda line, at: f"[pod/sglang-0/server] {line}",
    "stern": lambda line, at: f"sglang-0 server | {line}",
    "a progress bar": lambda line, at: f"Capturing batches (bs=1): 100%|####| 3/3 [00:01<00:00]\r{line}",
    "tabs": lambda line, at: f"\t{line}\t",
    "torchrun": lambda line, at: f"[default0]:{line}",
    "supervisor": lambda line, at: f"2026-11-01 10:00:00,123 INFO server stderr | {line}",
    "loki": lambda line, at: f'2026-11-01T10:00:00Z\t{{app="sglang"}}\t{line}',
    "cloud json": lambda line, at: json.dumps({"severity": "INFO", "textPayload": line}),
    "fluent-bit": lambda line, at: json.dumps({"date": 1793527200.1, "message": line}),
    "rfc 5424": lambda line, at: f"<14>1 2026-11-01T10:00:00.003Z gpu01 sglang 1234 - - {line}",
    "line ends of windows": lambda line, at: line + "\r",
    "byte order mark": lambda line, at: line if at else "\ufeff" + line,
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS.keys())
@pytest.mark.parametrize("engine", LOGS)
def test_figures_are_read(engine: Engine, wrap: Callable[[str, int], str]) -> None:
    found = study([wrap(line, at) for at, line in enumerate(LOGS[engine])])
    assert found is not None
    assert (found.engine, found.record_count) == (engine, 5)
    assert found.pooled_accept_length is not None
    assert found.pooled_accept_length.value == pytest.approx(2.5)


@pytest.mark.parametrize("before", ['text="', "prompt: '", 'srv  log: request:  {"content": "'])
@pytest.mark.parametrize("engine", LOGS)
def test_figures_in_somebody_s_text_are_not(engine: Engine, before: str) -> None:
    found = study([f"{before}{line}" for line in LOGS[engine] if not line.startswith("   ")], engine)
    assert found is not None
    assert found.record_count == 0
