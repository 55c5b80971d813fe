"""SPEED-Bench: one file of it (parquet or JSONL), by `path`: its licence lets each user fetch it, nobody hand it on."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row, text_of, turns_of


def prompt_of(row: Row, number: int) -> Prompt:
    """`question_id`, `category`, `turns`."""
    name = row.get("question_id", number)
    return Prompt(id=f"speed_bench-{name}", category=text_of(row, "category"), turns=turns_of(row, "turns"))


DATASET: Final[Dataset] = Published(name="speed_bench", prompt_of=prompt_of)
