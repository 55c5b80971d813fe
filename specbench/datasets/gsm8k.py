"""GSM8K: the 1,319 school problems of its test split, one turn each, without examples before them."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row, text_of


def prompt_of(row: Row, number: int) -> Prompt:
    """`question`."""
    return Prompt(id=f"gsm8k-{number}", category="gsm8k", turns=(text_of(row, "question"),))


DATASET: Final[Dataset] = Published(
    name="gsm8k", repository="openai/gsm8k", file="main/test-00000-of-00001.parquet", prompt_of=prompt_of
)
