"""SGLang's command line, as each version takes it and what it makes of it."""

from typing import Any

import pytest

from specbench.dialects.sglang_death import diagnose
from specbench.embedded.arguments import ServerArguments, parse
from specbench.embedded.flags import table

NEWEST = "0.5.23"
EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path d"
STEPS = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens"
CAPPED = (
    "Max running requests is reset to 48 for speculative decoding. "
    "You can override this by explicitly setting --max-running-requests."
)
ADJUSTED = "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1"


def parsed(flags: str, version: str = NEWEST, **settings: bool) -> ServerArguments:
    return parse(["--model-path", "kimi", *flags.split()], version, **settings)


def refusal(flags: str, version: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        parsed(flags, version)
    assert exit_.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("launch_server.py: error: ")
    return last.removeprefix("launch_server.py: error: ")


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


def test_speculation() -> None:
    spec = parsed(f"{EAGLE3} {STEPS} 4 --max-running-requests 64")
    assert (spec.algorithm, spec.draft_path, spec.num_steps, spec.topk, spec.num_draft_tokens) == ("EAGLE3", "d", 3, 1, 4)
    assert (spec.max_running_requests, spec.warnings) == (64, ())
    assert spec.resolved["speculative_draft_model_path"] == "d"
    assert spec.resolved["speculative_num_draft_tokens"] == 4


def test_running_requests_are_capped_with_speculation_only() -> None:
    spec = parsed(f"{EAGLE3} {STEPS} 4")
    assert spec.max_running_requests == spec.resolved["max_running_requests"] == 48
    assert spec.warnings == (CAPPED,)
    assert parsed("").max_running_requests is None


def test_older_versions_cap_without_a_word() -> None:
    spec = parsed(f"{EAGLE3} {STEPS} 4", "0.5.3")
    assert spec.max_running_requests == 48
    assert CAPPED not in spec.warnings


def test_an_engine_of_its_own_is_not_capped() -> None:
    spec = parsed(f"{EAGLE3} {STEPS} 9", "0.5.9", corrections=False)
    assert spec.max_running_requests is None
    assert spec.resolved["disable_overlap_schedule"] is False
    assert (spec.warnings, spec.num_draft_tokens) == ((ADJUSTED,), 4)


@pytest.mark.parametrize("draft_tokens", ["9", ""])
def test_topk_1_forces_the_draft_tokens(draft_tokens: str) -> None:
    flags = f"{EAGLE3} {STEPS} {draft_tokens}" if draft_tokens else f"{EAGLE3} {STEPS}".rpartition(" ")[0]
    spec = parsed(f"{flags} --max-running-requests 8")
    assert (spec.num_draft_tokens, spec.warnings) == (4, (ADJUSTED,))


def test_a_tree_keeps_its_draft_tokens() -> None:
    tree = parsed(
        f"{EAGLE3} --speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8", corrections=False
    )
    assert (tree.num_steps, tree.topk, tree.num_draft_tokens, tree.warnings) == (5, 4, 8, ())


@pytest.mark.parametrize(
    ("algorithm", "version", "values"),
    [
        ("EAGLE3", "0.4.9", (5, 4, 8)),
        ("EAGLE3", "0.5.6", (5, 4, 8)),
        ("STANDALONE", "0.5.3", (3, 1, 4)),
        ("EAGLE3", "0.5.9", (3, 1, 4)),
        ("EAGLE3", NEWEST, (3, 1, 4)),
    ],
)
def test_values_that_sglang_guesses(algorithm: str, version: str, values: tuple[int, int, int]) -> None:
    spec = parsed(f"--speculative-algorithm {algorithm} --speculative-draft-model-path d", version)
    assert (spec.num_steps, spec.topk, spec.num_draft_tokens) == values
    assert ADJUSTED not in spec.warnings


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ("--speculative-eagle-topk 1", "AssertionError: "),
        ("--speculative-num-draft-tokens 4", "AssertionError: "),
        ("--speculative-num-steps 3", "TypeError: "),
        ("--speculative-num-steps 3 --speculative-eagle-topk 2", "TypeError: "),
    ],
)
def test_all_three_or_none(flags: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    complaint = refusal(f"{EAGLE3} {flags}", NEWEST, capsys)
    assert complaint.startswith(error)
    assert complaint.endswith("state all three or none")


@pytest.mark.parametrize(("name", "version"), [("MEDUSA", NEWEST), ("UNO", "0.5.19"), ("dspark", "0.5.14")])
def test_an_unknown_algorithm(name: str, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    complaint = refusal(f"--speculative-algorithm {name}", version, capsys)
    assert complaint == f"ValueError: Unknown speculative algorithm name: {name.upper()}"
    assert diagnose([f"launch_server.py: error: {complaint}"], 2).code == "unknown_speculative_algorithm"


def test_the_algorithm_in_any_case_from_0_5_12(capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed("--speculative-algorithm eagle3", "0.5.12").algorithm == "EAGLE3"
    complaint = refusal("--speculative-algorithm eagle3", "0.5.11", capsys)
    assert complaint.startswith("argument --speculative-algorithm/--speculative-algo: invalid choice: 'eagle3'")


def test_nextn_is_eagle() -> None:
    assert parsed("--speculative-algorithm NEXTN").algorithm == "EAGLE"


def test_prompt_lookup() -> None:
    lookup = parsed(
        "--speculative-algorithm NGRAM --speculative-num-draft-tokens 8 --speculative-ngram-max-bfs-breadth 1 "
        "--speculative-ngram-max-trie-depth 5"
    )
    assert (lookup.topk, lookup.num_draft_tokens, lookup.num_steps, lookup.ngram_length) == (1, 8, 8, 5)
    assert lookup.draft_path is None
    assert lookup.resolved["speculative_eagle_topk"] == 1


@pytest.mark.parametrize(("version", "length"), [("0.5.9", 12), ("0.5.10", 18), (NEWEST, 18)])
def test_prompt_lookup_by_default(version: str, length: int) -> None:
    lookup = parsed("--speculative-algorithm NGRAM", version)
    assert (lookup.topk, lookup.num_draft_tokens, lookup.num_steps, lookup.ngram_length) == (10, 12, 1, length)
    guess = [text for text in lookup.warnings if text.startswith("speculative_num_draft_tokens is set to 12 by default")]
    assert len(guess) == (version != "0.5.9")


def test_the_match_window_was_the_number_of_draft_tokens() -> None:
    lookup = parsed("--speculative-algorithm NGRAM --speculative-ngram-max-match-window-size 6", "0.5.9")
    assert (lookup.num_draft_tokens, lookup.ngram_length) == (6, 6)


def test_a_block_drafter() -> None:
    block = parsed("--speculative-algorithm DFLASH --speculative-draft-model-path d --speculative-dflash-block-size 8")
    assert (block.num_steps, block.topk, block.num_draft_tokens) == (1, 1, 8)
    steps = parsed("--speculative-algorithm DFLASH --speculative-draft-model-path d --speculative-num-steps 3")
    assert (steps.num_steps, steps.num_draft_tokens) == (1, 16)
    assert "DFLASH only supports speculative_num_steps == 1; overriding speculative_num_steps=3 to 1." in steps.warnings


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ("DFLASH", "ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path."),
        (
            "DFLASH --speculative-draft-model-path d --speculative-dflash-block-size 8 --speculative-num-draft-tokens 4",
            "ValueError: Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ",
        ),
        ("NGRAM --enable-dp-attention", "ValueError: Currently ngram speculative decoding does not support dp attention."),
        (
            "STANDALONE --enable-dp-attention",
            "ValueError: Currently standalone speculative decoding does not support dp attention.",
        ),
    ],
)
def test_what_an_algorithm_refuses(flags: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(f"--speculative-algorithm {flags}", NEWEST, capsys).startswith(complaint)


@pytest.mark.parametrize(
    ("algorithm", "version", "off"),
    [
        ("EAGLE3", "0.5.3", True),
        ("EAGLE3", "0.5.10", True),
        ("EAGLE3", "0.5.11", False),
        ("NGRAM", "0.5.13", True),
        ("NGRAM", "0.5.14", False),
    ],
)
def test_the_overlap_schedule(algorithm: str, version: str, off: bool) -> None:
    spec = parsed(f"--speculative-algorithm {algorithm}", version)
    assert spec.resolved["disable_overlap_schedule"] is off
    assert any("verlap scheduler" in text for text in spec.warnings) is off


def test_mixed_chunks_are_switched_off() -> None:
    spec = parsed(f"{EAGLE3} --enable-mixed-chunk")
    assert spec.resolved["enable_mixed_chunk"] is False
    assert "Mixed chunked prefill is disabled because of using eagle speculative decoding." in spec.warnings
    assert parsed("--enable-mixed-chunk").resolved["enable_mixed_chunk"] is True
