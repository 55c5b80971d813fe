"""The log's lines by version: golden words, and the same numbers back through the reader."""

import io

import pytest

from specbench.dialects.sglang_log import parse_line
from specbench.dialects.sglang_version import rate_meaning
from specbench.embedded.batch_lines import Acceptance, decode_line, prefill_line
from specbench.embedded.dialect import DialectLog
from specbench.embedded.interface import EngineFacts, EngineStep

VERSIONS = (
    *("0.4.3", "0.4.5", "0.4.6", "0.4.6.post5", "0.4.9", "0.4.10.post2", "0.5.3", "0.5.4", "0.5.4.post3", "0.5.5"),
    *("0.5.5.post3", "0.5.8.post1", "0.5.9", "0.5.10.post1", "0.5.11", "0.5.16", "0.5.20", "0.5.23"),
)
DECODE = EngineStep(kind="decode", running_requests=8, used_tokens=9216, verify_count=8, correct_tokens=14, graph=True)
PREFILL = EngineStep(kind="prefill", running_requests=0, new_requests=1, new_tokens=512)
TAKEN = Acceptance(correct_tokens=175, verify_count=100)

DECODE_GOLDEN = {
    "0.4.3": "Decode batch. #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, "
    "gen throughput (token/s): 1204.33, #queue-req: 0",
    "0.4.5": "Decode batch. #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, "
    "gen throughput (token/s): 1204.33, #queue-req: 0, ",
    "0.4.9": "Decode batch. #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, cuda graph: True, "
    "gen throughput (token/s): 1204.33, #queue-req: 0",
    "0.5.3": "Decode batch. #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, cuda graph: True, "
    "gen throughput (token/s): 1204.33, #queue-req: 0, ",
    "0.5.4": "Decode batch [482], #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, accept rate: 0.69, "
    "cuda graph: True, gen throughput (token/s): 1204.33, #queue-req: 0, ",
    "0.5.8.post1": "Decode batch, #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, accept rate: 0.69, "
    "cuda graph: True, gen throughput (token/s): 1204.33, #queue-req: 0, ",
    "0.5.10.post1": "Decode batch, #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, accept rate: 0.69, "
    "cuda graph: True, gen throughput (token/s): 1204.33, #queue-req: 0",
    "0.5.23": "Decode batch, #running-req: 8, #token: 9216, token usage: 0.02, accept len: 2.75, accept rate: 0.58, "
    "cuda graph: True, gen throughput (token/s): 1204.33, #queue-req: 0",
}
PREFILL_GOLDEN = {
    "0.4.3": "Prefill batch. #new-seq: 1, #new-token: 512, #cached-token: 0, cache hit rate: 0.00%, token usage: 0.00, "
    "#running-req: 0, #queue-req: 0",
    "0.4.5": "Prefill batch. #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0, ",
    "0.4.9": "Prefill batch. #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0",
    "0.5.4": "Prefill batch [17], #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0, ",
    "0.5.9": "Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0, input throughput (token/s): 910.22, cuda graph: False",
    "0.5.10": "Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0, cuda graph: False, input throughput (token/s): 910.22",
    "0.5.23": "Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 910.22",
}


def facts(version: str, algorithm: str | None = "EAGLE3") -> EngineFacts:
    return EngineFacts(
        dialect_version=version,
        simulated=True,
        model_path="kimi",
        served_model_name="kimi",
        resolved={},
        algorithm=algorithm,
        capacity_tokens=409600,
        max_running_requests=48,
        graphs=True,
        draft_tokens=4 if algorithm else 0,
        steps=3 if algorithm else 0,
        topk=1 if algorithm else 0,
    )


def a_log(
    version: str, interval: int = 2, tp_size: int = 8, algorithm: str | None = "EAGLE3"
) -> tuple[DialectLog, io.StringIO]:
    stream = io.StringIO()
    return DialectLog(facts(version, algorithm), decode_log_interval=interval, tp_size=tp_size, stream=stream), stream


@pytest.mark.parametrize("version", DECODE_GOLDEN)
def test_decode_lines(version: str) -> None:
    assert decode_line(DECODE, facts(version), TAKEN, 482, 1204.33) == DECODE_GOLDEN[version]


@pytest.mark.parametrize("version", PREFILL_GOLDEN)
def test_prefill_lines(version: str) -> None:
    assert prefill_line(PREFILL, facts(version), 17, 910.22) == PREFILL_GOLDEN[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_reader_finds_every_number_again(version: str) -> None:
    line = parse_line("[2026-11-01 10:00:01 TP0] " + decode_line(DECODE, facts(version), TAKEN, 482, 1204.33))
    assert line.sample is not None
    sample = line.sample
    assert (sample.running_requests, sample.queue_requests, sample.accept_length) == (8, 0, 2.75)
    assert (sample.gen_throughput_tps, sample.rank) == (1204.33, {"tp": 0})
    assert parse_line("[2026-11-01 10:00:01 TP0] " + prefill_line(PREFILL, facts(version), 17, 910.22)).kind == "prefill"


@pytest.mark.parametrize("version", [version for version in VERSIONS if version.startswith("0.5.") and version != "0.5.3"])
@pytest.mark.parametrize("correct_tokens", [0, 110, 260])
def test_the_rate_means_what_the_version_means(version: str, correct_tokens: int) -> None:
    line = parse_line(
        "[2026-11-01 10:00:01] " + decode_line(DECODE, facts(version), Acceptance(correct_tokens, 100), 1, 9.0)
    )
    assert line.sample is not None
    pair = (line.sample.accept_length, line.sample.accept_rate)
    meaning = rate_meaning([pair], version, draft_tokens=4, steps=3)
    expected = (
        "drafts_over_draft_tokens_minus_1"
        if version in ("0.5.11", "0.5.16", "0.5.20", "0.5.23")
        else ("tokens_over_steps_plus_1" if version in ("0.5.4", "0.5.4.post3", "0.5.5") else "tokens_over_draft_tokens")
    )
    assert meaning.convention == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_without_speculation_there_is_no_acceptance(version: str) -> None:
    line = parse_line("[2026-11-01 10:00:01] " + decode_line(DECODE, facts(version, None), None, 1, 9.0))
    assert line.sample is not None
    assert (line.sample.accept_length, line.sample.accept_rate) == (None, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_whole_log_is_understood(version: str) -> None:
    log, stream = a_log(version)
    log.begin("model_path='kimi'", ())
    for name in ("weights", "kv_cache", "graph_capture", "drafter"):
        log.phase(name, done=False)
        log.phase(name, done=True, elapsed_s=0.1)
    log.limits()
    log.ready()
    log.step(PREFILL)
    log.step(DECODE)
    log.step(DECODE)
    log.flush_refused(1, 0)
    log.flushed()
    log.draining()
    log.leaving(0)
    lines = [parse_line(text) for text in stream.getvalue().splitlines()]
    assert "SIMULATED" in lines[0].text
    assert [line.text for line in lines if line.kind in ("unrecognised", "partial", "noise", "fatal")] == []
    kinds = [line.kind for line in lines]
    assert (kinds.count("ready"), kinds.count("prefill"), kinds.count("decode"), kinds.count("flush")) == (1, 1, 1, 2)
    limits = next(line for line in lines if line.name == "limits")
    assert limits.value["max_running_requests"] == 48


def test_prefills_dilute_the_length_up_to_0_5_3() -> None:
    for version, length in (("0.5.3", 1 + 28 / 17), ("0.5.4", 1 + 28 / 16)):
        log, _ = a_log(version)
        log.step(PREFILL)
        log.step(DECODE)
        log.step(DECODE)
        assert log.last_acceptance is not None
        assert log.last_acceptance.length == pytest.approx(length)


def test_the_average_lacks_the_partial_interval_until_a_flush() -> None:
    log, stream = a_log("0.5.23", interval=2)
    log.step(DECODE)
    assert log.avg_spec_accept_length is None
    log.step(DECODE)
    assert log.avg_spec_accept_length == pytest.approx(1 + 14 / 8)
    log.step(EngineStep(kind="decode", running_requests=8, verify_count=8, correct_tokens=0))
    assert log.avg_spec_accept_length == pytest.approx(1 + 14 / 8)
    log.flushed()
    assert log.avg_spec_accept_length is None
    log.step(DECODE)
    assert stream.getvalue().count("Decode batch") == 1  # the flush began a new interval


def test_ranks_and_levels() -> None:
    for version, tp_size, rank in (("0.5.23", 8, {"tp": 0}), ("0.5.23", 1, None), ("0.4.3", 1, {"tp": 0})):
        log, stream = a_log(version, tp_size=tp_size)
        log.step(PREFILL)
        log.ready()
        first, second = (parse_line(text) for text in stream.getvalue().splitlines())
        assert (first.rank, second.rank) == (rank, None)
    stream = io.StringIO()
    silent = DialectLog(facts("0.5.23"), decode_log_interval=1, tp_size=1, log_level="warning", stream=stream)
    silent.begin("", ("a warning",))
    silent.step(DECODE)
    assert [line.split("] ", 1)[1][:9] for line in stream.getvalue().splitlines()] == ["SIMULATED", "a warning"]
