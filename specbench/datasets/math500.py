"""MATH-500: 500 problems, their subject is the category."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row, text_of


def prompt_of(row: Row, number: int) -> Prompt:
    """`unique_id`, `subject`, `problem`."""
    name = str(row.get("unique_id", f"math500-{number}"))
    return Prompt(id=name, category=str(row.get("subject", "math500")), turns=(text_of(row, "problem"),))


DATASET: Final[Dataset] = Published(
    name="math500", repository="HuggingFaceH4/MATH-500", file="test.jsonl", prompt_of=prompt_of
)
