"""What the simulated engine keeps of a request, and the prefix cache that requests share."""

import asyncio
from typing import Final

from specbench.embedded.cost_model import CostModel, Draws
from specbench.embedded.interface import EngineFailed, FinishReason, GenerateRequest, StepOutput
from specbench.embedded.simulated_text import TOKEN_CHARACTERS, category_of, rendered, token_count
from specbench.units import Ratio

CACHE_ENTRIES: Final = 512


class Request:
    """One request on its way. `position` counts the tokens given out."""

    def __init__(self, request: GenerateRequest, seed: int, model: CostModel, eos_ratio: Ratio) -> None:
        self.prompt = rendered(request)
        self.prompt_tokens = token_count(self.prompt)
        self.cached_tokens = 0
        self.position = 0
        self.gone = False
        self.outputs: asyncio.Queue[StepOutput | EngineFailed] = asyncio.Queue()
        self._draws = Draws(seed, self.prompt, request.seed if request.temperature > 0 else None)
        ended = self._draws.answer_length(request.max_tokens, 0.0 if request.ignore_eos else eos_ratio)
        self.end_tokens = min(request.max_tokens, ended)
        self._reason: FinishReason = "stop" if ended <= request.max_tokens else "length"
        self._words = self._draws.words(self.end_tokens)
        self._chances = model.chances(category_of(request))
        self._proposed_tokens = model.proposed_tokens

    @property
    def whole_tokens(self) -> int:
        """KV cache slots it may come to need."""
        return self.prompt_tokens + self.end_tokens

    @property
    def answer(self) -> str:
        return "".join(self._words[: self.position])

    def first(self) -> StepOutput:
        """The prefill's token."""
        return self._give(1, None)

    def step(self) -> StepOutput:
        """One decode step: the accepted draft tokens and the target's own, cut at the end of the answer."""
        if not self._chances:
            return self._give(1, None)
        accepted = self._draws.accepted(self.position, self._chances)
        return self._give(accepted + 1, accepted)

    def _give(self, count: int, correct_tokens: int | None) -> StepOutput:
        begin = self.position
        self.position = min(begin + count, self.end_tokens)
        return StepOutput(
            text="".join(self._words[begin : self.position]),
            new_tokens=self.position - begin,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            verify=correct_tokens is not None,
            correct_tokens=correct_tokens,
            proposed_tokens=None if correct_tokens is None else self._proposed_tokens,
            finish_reason=self._reason if self.position >= self.end_tokens else None,
        )


class PrefixCache:
    """Texts whose KV cache is kept. A prompt that begins with one need not compute that part again."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def cached_tokens(self, prompt: str) -> int:
        """At least one token is left to compute."""
        longest = max((len(text) for text in self._texts if prompt.startswith(text)), default=0)
        return min(longest // TOKEN_CHARACTERS, token_count(prompt) - 1)

    def keep(self, text: str) -> None:
        self._texts.pop(text, None)
        self._texts[text] = None
        if len(self._texts) > CACHE_ENTRIES:
            del self._texts[next(iter(self._texts))]

    def clear(self) -> None:
        self._texts.clear()
