"""The shipped prompts: enough of them, all different, never edited."""

import hashlib
import importlib.resources
import itertools
import re
from collections import Counter

from specbench.datasets import Prompt
from specbench.datasets.builtin import FILE, every_prompt

CATEGORIES = ("chat", "code", "math", "reasoning", "writing", "summarize", "extract", "copy")

FILE_SHA256 = "d650aa37e21163503e616bef1f5a1dbecff5001bf454a41e39541ef246653c3d"
"""To change the prompts: add lines under new ids, never edit or renumber one (stored results refer to ids), then
put the new sum here (`sha256sum specbench/datasets/_builtin.jsonl`) and a line in CHANGELOG.md."""


def of(category: str) -> list[Prompt]:
    return [prompt for prompt in every_prompt() if prompt.category == category]


def shingles(prompt: Prompt, words_count: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", " ".join(prompt.turns).lower())
    return set(zip(*(words[start:] for start in range(words_count)), strict=False))


def words_count(prompt: Prompt) -> int:
    return len(prompt.turns[0].split())


def test_the_file_is_the_pinned_one() -> None:
    data = importlib.resources.files("specbench.datasets").joinpath(FILE).read_bytes()
    assert hashlib.sha256(data).hexdigest() == FILE_SHA256


def test_eight_categories_of_a_dozen_or_more() -> None:
    counts = Counter(prompt.category for prompt in every_prompt())
    assert tuple(counts) == CATEGORIES
    assert min(counts.values()) >= 12
    assert sum(counts.values()) >= 96


def test_ids_count_within_their_category() -> None:
    for category in CATEGORIES:
        expected = [f"{category}-{number:03d}" for number in range(1, len(of(category)) + 1)]
        assert [prompt.id for prompt in of(category)] == expected


def test_conversations_of_two_turns_are_in_every_category() -> None:
    talks = [prompt for prompt in every_prompt() if len(prompt.turns) == 2]
    assert len(talks) >= 12
    assert {prompt.category for prompt in talks} == set(CATEGORIES)
    assert {len(prompt.turns) for prompt in every_prompt()} == {1, 2}


def test_no_two_prompts_are_alike() -> None:
    for one, other in itertools.combinations(every_prompt(), 2):
        left, right = shingles(one, 3), shingles(other, 3)
        shared_ratio = len(left & right) / min(len(left), len(right))
        assert shared_ratio < 0.1, f"{one.id} and {other.id} share {shared_ratio:.0%} of their three-word sequences"


def test_turns_are_clean_text() -> None:
    for prompt in every_prompt():
        for turn in prompt.turns:
            assert turn == turn.strip()
            assert "\t" not in turn, prompt.id
            assert "\r" not in turn, prompt.id


def test_source_texts_are_part_of_the_prompt() -> None:
    assert all(100 <= words_count(prompt) <= 300 for prompt in of("summarize") + of("extract"))
    assert all(40 <= words_count(prompt) <= 120 for prompt in of("copy"))
    assert all(20 <= words_count(prompt) <= 300 for prompt in of("code"))
