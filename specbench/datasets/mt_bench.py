"""MT-Bench: 80 conversations of two turns in eight categories. Both turns are sent, without a system prompt."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row, text_of, turns_of


def prompt_of(row: Row, number: int) -> Prompt:
    """FastChat's names (`question_id`, `turns`) or the hub's (`prompt_id`, `prompt`)."""
    name = row.get("question_id", row.get("prompt_id", number))
    return Prompt(id=f"mt_bench-{name}", category=text_of(row, "category"), turns=turns_of(row, "turns", "prompt"))


DATASET: Final[Dataset] = Published(
    name="mt_bench", repository="HuggingFaceH4/mt_bench_prompts", file="raw/question.jsonl", prompt_of=prompt_of
)
