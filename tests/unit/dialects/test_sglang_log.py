"""SGLang's lines beyond what the cases hold; and whatever the line is, nothing raises and no number is made up."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbench.dialects import LogLine
from specbench.dialects.sglang_log import parse_line

SAMPLES: Final = (
    (Path(__file__).parents[2] / "data" / "engines" / "sglang" / "server.log").read_text(encoding="utf-8").splitlines()
)
DECODE: Final = [line for line in SAMPLES if "Decode batch" in line]
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


def numbers(line: LogLine) -> Iterator[float]:
    values: list[Any] = [*line.value.values()]
    if line.sample is not None:
        sample = line.sample
        values += [*sample.extra.values(), sample.running_requests, sample.queue_requests, sample.accept_length]
        values += [sample.accept_rate, sample.gen_throughput_tps]
    yield from (float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    for one in line.also:
        yield from numbers(one)


def printed(text: str) -> set[float]:
    """Numbers as they stand in the text, with and without a sign, and percentages as ratios."""
    found = {float(word) for word in NUMBER.findall(text)}
    found |= {abs(one) for one in found} | {-one for one in found}
    return found | {round(one / 100, 12) for one in found}


PIECES: Final = st.sampled_from(
    [
        "[0m",
        "\x1b[2m",
        "\r",
        ", ",
        ": ",
        "TP0] ",
        "9",
        ".",
        "-",
        "nan",
        "[2026-11-01 10:00:01] ",
        "Decode batch, ",
        "%",
        "é",
        "\x00",
    ]
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A line of some version, cut, doubled, spliced or with something put in."""
    line = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(line)))
        match draw(st.integers(0, 3)):
            case 0:
                line = line[:at]
            case 1:
                line = line[:at] + draw(PIECES) + line[at:]
            case 2:
                line = line[:at] + draw(st.sampled_from(SAMPLES))
            case _:
                line = line[at:]
    return line


@settings(max_examples=600, deadline=None)
@given(st.one_of(damaged(), st.text(max_size=200)))
def test_never_raises_and_makes_up_no_number(line: str) -> None:
    assert set(numbers(parse_line(line))) <= printed(line)


@settings(max_examples=300, deadline=None)
@given(line=st.sampled_from(DECODE), data=st.data())
def test_a_cut_decode_line_is_never_a_sample(line: str, data: st.DataObject) -> None:
    """Cut anywhere before its last mandatory value, a line is partial as soon as it can be told for a batch line."""
    end = line.index("#queue-req: ") + len("#queue-req: ")
    begin = line.index("Decode batch") + 2
    found = parse_line(line[: data.draw(st.integers(begin, end))])
    assert (found.kind, found.sample) == ("partial", None)


@pytest.mark.parametrize("line", SAMPLES)
def test_every_format_is_known(line: str) -> None:
    assert parse_line(line).kind not in ("unrecognised", "partial")


@pytest.mark.parametrize("digits", ["9" * 400, "1e999", "1" * 5000 + ".25"])
def test_no_float_holds_it(digits: str) -> None:
    assert parse_line(f"[2026-11-01 10:00:01] Decode batch, #running-req: {digits}, #queue-req: 0").sample is None


@pytest.mark.parametrize(
    ("text", "kind", "name", "value"),
    [
        ("Load weight begin. avail mem=139.20 GB", "phase", "weights", {"state": "begin", "available_gb": 139.2}),
        (
            "target KV Cache is allocated. dtype: torch.bfloat16, #tokens: 812, KV size: 9.50 GB",
            "phase",
            "kv_cache",
            {"state": "end", "tokens": 812, "kv_gb": 9.5},
        ),
        (
            "Capture cuda graph end. Time elapsed: 30.11 s. mem usage=1.20 GB. avail mem=21.90 GB.",
            "phase",
            "graph_capture",
            {"state": "end", "elapsed_s": 30.11, "used_gb": 1.2, "available_gb": 21.9},
        ),
        ("Capture draft extend cuda graph begin. avail mem=2.00 GB", "phase", "draft_graph_capture", None),
        (
            "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4",
            "phase",
            "verify_graph_capture",
            None,
        ),
        ("Capture target prefill CUDA graph end. elapsed=3.00 s", "phase", "prefill_graph_capture", None),
        ("The server is fired up and ready to roll!", "ready", "ready", {}),
        ("Cache flushed successfully!", "flush", "flushed", {}),
        (
            "Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting",
            "warning",
            "max_running_requests_reset",
            {"max_running_requests": 48},
        ),
        ("Endpoint '/get_server_info' is deprecated and will be removed", "warning", "deprecated_endpoint", {}),
        ("Scheduler hit an exception: Traceback (most recent call last):", "fatal", "exception", {}),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "fatal", "out_of_memory", {}),
        ("ValueError: max_tokens must be positive", "known", "exception", {}),
        ("some other message", "known", "", {}),
    ],
)
def test_other_lines(text: str, kind: str, name: str, value: dict[str, Any] | None) -> None:
    found = parse_line(f"[2026-11-01 10:00:01 TP0] {text}")
    assert (found.kind, found.name, found.rank) == (kind, name, {"tp": 0})
    if value is not None:
        assert found.value == value


def test_server_args_are_read() -> None:
    arguments = "model_path='Qwen/Qwen3-8B', tp_size=8, mem_fraction_static=0.9, x=None, a=True"
    assert parse_line(f"[2026-08-03 11:20:14] server_args=ServerArgs({arguments})").value == {
        "model_path": "Qwen/Qwen3-8B",
        "tp_size": 8,
        "mem_fraction_static": 0.9,
        "a": True,
    }
