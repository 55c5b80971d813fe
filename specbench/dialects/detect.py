"""Which engine wrote a log, by its own words. Pure; the first line that only one engine writes decides."""

import re
from typing import Final, Literal

from specbench.dialects.lines import uncollected

Engine = Literal["sglang", "vllm", "llamacpp"]
ENGINES: Final[tuple[Engine, ...]] = ("sglang", "vllm", "llamacpp")

MARKS: Final[tuple[tuple[Engine, re.Pattern[str]], ...]] = (
    (
        "vllm",
        re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? \[?[\w./-]+\.py:\d+\] "),
    ),
    ("vllm", re.compile(r"SpecDecoding metrics: Mean|vLLM")),
    ("sglang", re.compile(r"(?:Decode|Prefill) batch[.,]? (?:\[\d+\],? ?)?#|server_args=ServerArgs\(|SGLang|sgl_kernel")),
    ("sglang", re.compile(r"\bsglang(?:\.(?:srt|launch_server|bench_\w+)\b|/(?:srt|python)/| serve\b)")),
    ("sglang", re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]+\d+)+\] ")),
    ("sglang", re.compile(r"The server is fired up |GenerateReqInput\(|Received sigquit from a child")),
    (
        "llamacpp",
        re.compile(
            r"(?:^|[\s|])\d{1,6}\.\d\d\.\d{3}\.\d{3} [A-Z] |slot +(?:print_timing|launch_slot_|release): +id"
            r"|llama-server|llama_"
        ),
    ),
    ("llamacpp", re.compile(r"draft acceptance(?: rate)? = |^n_drafted +=|^encoded +\d+ tokens in|ggml_|gguf")),
    ("llamacpp", re.compile(r"^build(?:_info)?: b?\d{3,6}\b|couldn't bind HTTP server socket, hostname: ")),
)


VLLM_PROCESS: Final = re.compile(r"\((?:APIServer|EngineCore)[\w-]* pid=\d+\)")
"""Looks like a collector's word and is none."""
FIGURES: Final[tuple[tuple[Engine, re.Pattern[str]], ...]] = (
    ("vllm", re.compile(r"(?:SpecDecoding|Speculative) metrics: |Avg prompt throughput: ")),
    ("sglang", re.compile(r"(?:Decode|Prefill) batch[.,]? (?:\[\d+\],? ?)?#")),
    ("llamacpp", re.compile(r"slot +print_timing: +id|draft acceptance(?: rate)? = ")),
)


def writer_of_figures(line: str) -> Engine | None:
    """Whose line of figures it is; None when it is no such line."""
    head = line[:600]
    return next((engine for engine, mark in FIGURES if mark.search(head)), None)


def engine_of(line: str) -> Engine | None:
    """None when the line could be anybody's."""
    head = uncollected(line)[:600]
    found = next((engine for engine, mark in MARKS if mark.search(head)), None)
    return found or ("vllm" if VLLM_PROCESS.search(line[:600]) else None)
