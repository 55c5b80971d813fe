"""Random words, for load without meaning: prompts share a prefix by chance only, and acceptance on them means nothing.

A word is a token or two: what a prompt really has is in the records (`prompt_tokens`, the server's count).
"""

from random import Random
from typing import Final

from specbench.datasets import Dataset, Prompt, demand_category
from specbench.suite import Workload

TEXT: Final = """
the of and to in is that it was for on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would other
into has more her two like him see time could no make than first been its who now people my made over did down only way
find use may water long little very after words called just where most know get through back much before go
"""
WORDS: Final = TEXT.split()


class RandomWords:
    """`workload.prompt_word_count` words a prompt."""

    def prompts(self, workload: Workload, seed: int, count: int) -> tuple[Prompt, ...]:
        for name in workload.categories:
            demand_category(name, ("random",))
        return tuple(
            Prompt(
                id=f"random-{seed}-{index}", category="random", turns=(words(f"{seed}/{index}", workload.prompt_word_count),)
            )
            for index in range(count)
        )


def words(seed: str, count: int) -> str:
    """So many words, the same for the same seed."""
    return " ".join(Random(seed).choices(WORDS, k=count))


DATASET: Final[Dataset] = RandomWords()
