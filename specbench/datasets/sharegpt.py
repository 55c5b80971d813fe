"""ShareGPT: a file of conversations by `path`; the users' turns are sent, the answers in the file are not."""

from typing import Final

from specbench.datasets import Dataset, Prompt
from specbench.datasets._published import Published, Row

HUMANS: Final = ("human", "user")


def prompt_of(row: Row, number: int) -> Prompt | None:
    """`id`, `conversations` (or `conversation`): a list of `from` and `value`. None without a user's word."""
    said = row["conversation"] if "conversation" in row else row["conversations"]
    turns = tuple(one["value"] for one in said if one.get("from", one.get("role")) in HUMANS and one["value"].strip())
    return Prompt(id=f"{row.get('id', 'sharegpt')}-{number}", category="sharegpt", turns=turns) if turns else None


DATASET: Final[Dataset] = Published(name="sharegpt", prompt_of=prompt_of)
