"""A fuzzed log line never raises, and no grammar gives a number that is not in the line."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from specbench.dialects import DecodeSample, LogLine
from specbench.dialects.llamacpp_log import LlamaLog
from specbench.dialects.sglang_log import parse_line as parse_sglang
from specbench.dialects.vllm_log import parse_line as parse_vllm

DATA: Final = Path(__file__).parents[2] / "data"
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
FIELDS: Final = ("running_requests", "queue_requests", "accept_length", "accept_rate", "gen_throughput_tps")
GRAMMARS: Final[dict[str, tuple[Callable[[str], LogLine], str]]] = {
    "sglang": (parse_sglang, "cases/sgl-*.log"),
    "vllm": (parse_vllm, "c*/vllm-*.log"),
    "llamacpp": (LlamaLog().parse_line, "c*/llama*.log"),
}


def corpus(pattern: str) -> list[str]:
    texts = [path.read_bytes().decode("utf-8", "replace") for path in sorted(DATA.glob(pattern))]
    lines = [line for text in texts for line in text.split("\n")]
    told = [line for line in lines if re.search("accept|throughput|batch|statistics", line)]
    return told or lines


def fuzzed(lines: list[str], seed: int, count: int) -> Iterator[str]:
    """Cut, joined, characters changed, doubled or lost."""
    dice = random.Random(seed)
    for _ in range(count):
        line = dice.choice(lines)[:600]
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(line) + 1)
            match dice.randrange(5):
                case 0:
                    line = line[:at]
                case 1:
                    line = line[:at] + dice.choice("0123456789.,:;# %-eE\x00\x1b[|\u00b2\u0663") + line[at + 1 :]
                case 2:
                    line = line[:at] + dice.choice(lines)[:300]
                case 3:
                    line = line[:at] + line[at + dice.randrange(9) :]
                case _:
                    line = line[:at] + line[max(0, at - 12) :]
        yield line


def figures(line: LogLine) -> Iterator[float]:
    """Every number that a sample holds as the line printed it."""
    for one in (line, *line.also):
        if one.sample is not None:
            values = [getattr(one.sample, name) for name in FIELDS]
            yield from (float(value) for value in values if value is not None)


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("seed", range(4))
def test_a_fuzzed_line_gives_only_what_it_holds(name: str, seed: int) -> None:
    parse, pattern = GRAMMARS[name]
    lines = corpus(pattern)
    assert len(lines) > 20
    before: list[str] = []
    sampled = 0
    for line in fuzzed(lines, seed, 4000):
        found = parse(line)
        before = [*before[-40:], line]
        said = line if name != "llamacpp" else "\n".join(before)  # a record of llama.cpp's may span lines
        printed = {float(word) for word in NUMBER.findall(said)}
        derived = name == "vllm" and is_cumulative(found.sample)
        for value in figures(found) if not derived else ():
            sampled += 1
            assert any(abs(value - one) < 1e-9 or abs(value - one / 100) < 1e-9 for one in printed), (value, line)
    assert sampled > 50


def is_cumulative(sample: DecodeSample | None) -> bool:
    """vLLM V0's length is computed: emitted / (drafted / k)."""
    extra: dict[str, Any] = sample.extra if sample is not None else {}
    return bool(extra.get("cumulative"))
