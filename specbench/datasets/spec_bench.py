"""Spec-Bench: 480 questions; MT-Bench's in eight categories of two turns, translation, summaries, QA, maths and RAG."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row, text_of, turns_of


def prompt_of(row: Row, number: int) -> Prompt:
    """`question_id`, `category`, `turns`."""
    name = row.get("question_id", number)
    return Prompt(id=f"spec_bench-{name}", category=text_of(row, "category"), turns=turns_of(row, "turns"))


DATASET: Final[Dataset] = Published(
    name="spec_bench",
    url="https://raw.githubusercontent.com/hemingkx/Spec-Bench/main/data/spec_bench/question.jsonl",
    prompt_of=prompt_of,
)
