"""What changed between versions, and what a rate means when the version is wrong or missing."""

import pytest

from specbench.dialects import sglang_version as versions
from specbench.dialects.sglang_args import LaunchFacts, launch_facts

STEPS, TOKENS, DRAFTS = "tokens_over_steps_plus_1", "tokens_over_draft_tokens", "drafts_over_draft_tokens_minus_1"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.4.9", None),
        ("0.5.3.post3", None),
        ("0.5.4", STEPS),
        ("0.5.5", STEPS),
        ("0.5.5.post3", TOKENS),
        ("0.5.9+cu129", TOKENS),
        ("0.5.10.post1", TOKENS),
        ("v0.5.11", DRAFTS),
        ("0.5.23", DRAFTS),
        ("main", None),
        (None, None),
    ],
)
def test_convention_by_version(version: str | None, expected: str | None) -> None:
    assert versions.convention_of(version) == expected


@pytest.mark.parametrize(
    ("pairs", "version", "draft_tokens", "steps", "expected"),
    [
        ([(2.75, 0.58), (2.5, 0.5)], None, None, None, (DRAFTS, 4)),
        ([(2.75, 0.69), (2.5, 0.62)], None, None, None, (TOKENS, 4)),
        ([(2.75, 0.58)], "0.5.10", 4, 3, (DRAFTS, 4)),  # the numbers speak against the version
        ([(2.75, 0.69)], "0.5.12", 4, 3, (TOKENS, 4)),
        ([(2.4, 0.4), (3.0, 0.5)], "0.5.4", 8, 5, (STEPS, 8)),  # a tree: steps + 1 is not the draft tokens
        ([(2.35, 0.47)], "0.5.3.post3", 5, 4, (STEPS, 5)),  # prints a rate that its release does not have
        ([(1.0, 0.0)], None, None, None, (DRAFTS, None)),  # dead: any count fits
        ([(1.0, 0.2)], "0.5.8", None, None, (TOKENS, 5)),
        ([(2.0, 0.9), (2.0, 0.1)], "0.5.12", 4, 3, (DRAFTS, 4)),  # adaptive steps fit nothing: the version decides
        ([(2.5, None)], "0.5.12", 4, 3, (None, 4)),
        ([], "0.5.12", None, None, (None, None)),
    ],
)
def test_rate_meaning(
    pairs: list[tuple[float | None, float | None]],
    version: str | None,
    draft_tokens: int | None,
    steps: int | None,
    expected: tuple[str | None, int | None],
) -> None:
    assert versions.rate_meaning(pairs, version, draft_tokens, steps) == expected


def test_flags_and_paths_by_version() -> None:
    assert versions.graphs_off_flags("0.5.18") == ("--disable-cuda-graph",)
    assert versions.graphs_off_flags(None) == ("--disable-cuda-graph",)
    assert versions.graphs_off_flags("0.5.23")[0] == "--cuda-graph-backend-decode=disabled"
    assert versions.ngram_length_flag("0.5.9") == "--speculative-ngram-max-match-window-size"
    assert versions.ngram_length_flag("0.5.23") == "--speculative-ngram-max-trie-depth"
    assert versions.server_info_paths("0.5.5") == ("/get_server_info",)
    assert versions.server_info_paths("0.5.6")[0] == "/server_info"
    assert versions.graph_max_bs_flag("0.5.16") == "--cuda-graph-max-bs"
    assert versions.graph_max_bs_flag("0.5.20") == "--cuda-graph-max-bs-decode"


@pytest.mark.parametrize(
    ("version", "correct"),
    [
        ("0.5.4", None),
        ("0.5.6", "spec_accept_token_num"),
        ("0.5.11", "spec_accepted_drafts"),
        ("0.5.12", "spec_num_correct_drafts"),
        (None, "spec_num_correct_drafts"),
    ],
)
def test_meta_info_names(version: str | None, correct: str | None) -> None:
    assert versions.meta_info_keys(version).correct == correct


def test_top_k_1_forces_the_draft_tokens() -> None:
    words = "--speculative-num-steps 3 --speculative-eagle-topk=1 --speculative-num-draft-tokens 16 --dp-size 2 --a --b"
    assert launch_facts(words, "0.5.23") == LaunchFacts(draft_tokens=4, steps=3, topk=1, dp_rank_count=2)
    assert launch_facts(words, "0.4.5").draft_tokens == 16
    assert (
        launch_facts("--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16").draft_tokens
        == 16
    )
