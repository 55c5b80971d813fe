"""HumanEval: 164 functions to complete. Through the chat template their acceptance differs from the papers' raw
completion; `api: generate` sends them raw."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row, text_of


def prompt_of(row: Row, number: int) -> Prompt:
    """`task_id`, `prompt`."""
    return Prompt(
        id=str(row.get("task_id", f"HumanEval/{number - 1}")), category="humaneval", turns=(text_of(row, "prompt"),)
    )


DATASET: Final[Dataset] = Published(
    name="humaneval",
    repository="openai/openai_humaneval",
    file="openai_humaneval/test-00000-of-00001.parquet",
    prompt_of=prompt_of,
)
