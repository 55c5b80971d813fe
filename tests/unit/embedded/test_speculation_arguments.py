"""What SGLang makes of the flags of speculation."""

import pytest

from specbench.dialects.sglang_death import diagnose
from tests.unit.embedded.command_line import ADJUSTED, CAPPED, EAGLE3, NEWEST, STEPS, parsed, refusal


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
