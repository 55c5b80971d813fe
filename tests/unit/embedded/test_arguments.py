"""SGLang's command line, as each version takes it and what it makes of it."""

from typing import Any

import pytest

from specbench.embedded.arguments import parse
from specbench.embedded.flags import table
from tests.unit.embedded.command_line import NEWEST, STEPS, parsed, refusal


def test_what_is_not_stated() -> None:
    plain = parsed("")
    assert (plain.served_model_name, plain.host, plain.port, plain.tp_size, plain.dp_size) == (
        "kimi",
        "127.0.0.1",
        30000,
        1,
        1,
    )
    assert (plain.algorithm, plain.num_draft_tokens, plain.max_running_requests) == (None, 0, None)
    assert (plain.cuda_graph, plain.decode_log_interval, plain.chunked_prefill_size) == (True, 40, 8192)
    assert (plain.warnings, plain.other) == ((), {})
    assert plain.resolved["speculative_algorithm"] is None
    assert plain.resolved["max_running_requests"] is None
    assert plain.resolved["disable_overlap_schedule"] is False


def test_values() -> None:
    stated = parsed(
        "--served-model-name k --host 0.0.0.0 --port 31000 --nccl-port 31500 --max-running-requests 64 --api-key secret "
        "--mem-fraction-static 0.85 --decode-log-interval 10 --log-level warning --enable-metrics --context-length 4096 "
        "--chunked-prefill-size -1 --disable-radix-cache --watchdog-timeout 600 --enable-cache-report --skip-server-warmup"
    )
    assert (stated.served_model_name, stated.host, stated.port, stated.nccl_port) == ("k", "0.0.0.0", 31000, 31500)
    assert (stated.max_running_requests, stated.mem_fraction_static_ratio, stated.decode_log_interval) == (64, 0.85, 10)
    assert (stated.log_level, stated.enable_metrics, stated.context_length) == ("warning", True, 4096)
    assert (stated.chunked_prefill_size, stated.disable_radix_cache, stated.watchdog_timeout_s) == (-1, True, 600.0)
    assert (stated.enable_cache_report, stated.skip_server_warmup, stated.api_key) == (True, True, "secret")
    assert "secret" not in str(stated.resolved)
    assert stated.other == {}


@pytest.mark.parametrize("flag", ["--tp-size", "--tp", "--tensor-parallel-size"])
def test_spellings_of_tensor_parallel(flag: str) -> None:
    assert parsed(f"{flag} 8").tp_size == parsed(f"{flag}=8").tp_size == 8


@pytest.mark.parametrize("flag", ["--dp-size", "--dp", "--data-parallel-size"])
def test_spellings_of_data_parallel(flag: str) -> None:
    assert parsed(f"{flag} 2").dp_size == parsed(f"{flag}=2").resolved["dp_size"] == 2


def test_short_spellings() -> None:
    short = parse(
        f"--model kimi --speculative-algo EAGLE3 --speculative-draft-model=d {STEPS} 4 --max-running-requests 8".split(),
        NEWEST,
    )
    assert (short.model_path, short.algorithm, short.draft_path) == ("kimi", "EAGLE3", "d")


def test_the_last_one_wins() -> None:
    assert parsed("--port 1 --port=2").port == 2


def test_further_flags_are_kept_as_what_they_are() -> None:
    flags = "--attention-backend fa3 --trust-remote-code --page-size 64 --schedule-conservativeness 0.3 --lora-paths a b"
    kept: dict[str, Any] = {
        "attention_backend": "fa3",
        "trust_remote_code": True,
        "page_size": 64,
        "schedule_conservativeness": 0.3,
        "lora_paths": ["a", "b"],
    }
    stated = parsed(flags)
    assert stated.other == kept
    assert stated.resolved.items() >= kept.items()


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("--no-such-flag", "unrecognized arguments: --no-such-flag"),
        ("--speculative-num-step 3", "unrecognized arguments: --speculative-num-step 3"),
        ("--port x", "argument --port: invalid int value: 'x'"),
        ("--max-running-requests 0", "argument --max-running-requests: must be at least 1, got 0"),
        ("--tp-size x", "argument --tp-size/--tensor-parallel-size/--tp: invalid int value: 'x'"),
        ("--cuda-graph-backend-decode disable", "argument --cuda-graph-backend-decode: invalid choice: 'disable'"),
        ("--cuda-graph-config {", "argument --cuda-graph-config: --cuda-graph-config must be a JSON object of phases"),
        ("--dtype", "argument --dtype: expected one argument"),
    ],
)
def test_what_is_refused(flags: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(flags, NEWEST, capsys).startswith(complaint)


def test_the_model_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([], NEWEST)
    assert capsys.readouterr().err.endswith("the following arguments are required: --model-path/--model\n")


@pytest.mark.parametrize(
    ("flag", "refused", "taken"),
    [
        ("--cuda-graph-max-bs 8", "0.5.20", "0.5.19"),
        ("--cuda-graph-bs 1 2", "0.5.20", "0.5.19"),
        ("--cuda-graph-max-bs-decode 8", "0.5.13", "0.5.14"),
        ("--disable-decode-cuda-graph", "0.5.13", "0.5.14"),
        ("--disable-prefill-cuda-graph", "0.5.13", "0.5.14"),
        ("--cuda-graph-backend-decode=disabled", "0.5.13", "0.5.19"),
        ("--speculative-ngram-max-match-window-size 4", "0.5.10", "0.5.9"),
        ("--speculative-ngram-max-trie-depth 4", "0.5.9", "0.5.10"),
        ("--nccl-port 1", "0.4.8", "0.4.9"),
        ("--stream-output", "0.5.20", "0.5.19"),
        ("--attn-dp-size 2", "0.5.20", "0.5.23"),
    ],
)
def test_flags_come_and_go(flag: str, refused: str, taken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(flag, refused, capsys) == f"unrecognized arguments: {flag}"
    parsed(flag, taken)


@pytest.mark.parametrize("version", ["0.4.6", "0.4.9", "0.5.3", "0.5.9", "0.5.10.post1", "0.5.14", "0.5.19", NEWEST])
def test_every_flag_of_a_version(version: str) -> None:
    """No two options of one version collide, and graphs can be switched off in all of them."""
    assert parsed("--disable-cuda-graph", version).cuda_graph is False
    assert parsed("--disable-cuda-graph", version).resolved["disable_cuda_graph"] is True


def test_the_table() -> None:
    """Two facts of the package sources that the table could lose without another test seeing it."""
    assert len(table()) > 600
    assert table()["--trust-remote-code"].kind == "switch"


@pytest.mark.parametrize(
    ("flags", "graphs"),
    [
        ("--disable-decode-cuda-graph", False),
        ("--disable-prefill-cuda-graph", True),
        ("--cuda-graph-backend-decode=disabled --cuda-graph-backend-prefill=disabled", False),
        ("--cuda-graph-backend-decode full", True),
        ("--cuda-graph-backend-prefill disabled", True),
        ('--cuda-graph-config {"decode":{"backend":"disabled"}}', False),
        ('--cuda-graph-config {"decode":{"backend":"full"}} --disable-cuda-graph', True),
    ],
)
def test_graphs(flags: str, graphs: bool) -> None:
    assert parsed(flags).cuda_graph is graphs


@pytest.mark.parametrize(
    ("flags", "version", "limit"),
    [
        ("--cuda-graph-max-bs 16", "0.5.9", 16),
        ("--cuda-graph-bs 1 2 32 4", "0.5.9", 32),
        ("--cuda-graph-max-bs-decode 16", NEWEST, 16),
        ("--cuda-graph-bs-decode 1 8", NEWEST, 8),
        ('--cuda-graph-config {"decode":{"max_bs":24}}', NEWEST, 24),
        ("", NEWEST, None),
    ],
)
def test_the_largest_batch_with_a_graph(flags: str, version: str, limit: int | None) -> None:
    assert parsed(flags, version).cuda_graph_max_bs == limit


def test_old_spellings_are_taken_with_a_warning() -> None:
    text = "'--disable-cuda-graph' is deprecated and will be removed in a future release. "
    assert parsed("--disable-cuda-graph").warnings == (
        text + "Use '--cuda-graph-backend-{decode,prefill}=disabled' instead.",
    )
    assert parsed("--disable-cuda-graph", "0.5.13").warnings == ()
