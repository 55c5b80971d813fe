"""What a simulated step costs and which draft tokens it accepts. Pure: no clock, no event loop, seeded draws."""

import hashlib
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, structs

from specbench.embedded.simulated_text import WORDS, sentences
from specbench.suite.rehearsal import Acceptance, Rehearsal
from specbench.units import Second

DrafterKind = Literal["eagle3", "other"]
EAGLE3_ARCHITECTURES: Final = ("LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM")
OLD_EAGLE: Final = ("EAGLE", "NEXTN")
"""SGLang's words that feed the drafter one layer's hidden states; an EAGLE-3 drafter needs three."""
ONE_PASS: Final = ("DFLASH",)
"""Drafts a whole block in one pass."""
LOOKUP: Final = "NGRAM"
LAUNCH_TIMES: Final = (
    "base_step_s",
    "target_launch_s",
    "draft_step_s",
    "draft_launch_s",
    "lookup_s",
    "prefill_s",
    "prefill_token_s",
)
"""What a launch effect stretches: all but the start-up."""


class Drafting(Struct, frozen=True, kw_only=True):
    """How the server speculates, as resolved."""

    algorithm: str
    """In capitals, as SGLang knows it."""
    draft_tokens: int
    """Tokens verified a step, bonus slot included."""
    steps: int
    topk: int = 1
    drafter: str | None = None
    """Its name in the suite; None when it has none, or for prompt lookup."""
    kind: DrafterKind = "other"
    """What the checkpoint is, whatever the command line says."""
    synthetic_length: float | None = None
    """Tokens a step to accept whatever is drafted (`SGLANG_SIMULATE_ACC_LEN`)."""

    @property
    def wrong_word(self) -> bool:
        """An EAGLE-3 checkpoint under `EAGLE`: SGLang takes it without a word, and nothing is ever accepted."""
        return self.kind == "eagle3" and self.algorithm in OLD_EAGLE

    @property
    def longest_chain(self) -> int:
        """Draft tokens that one step can accept. Prompt lookup and block drafters have no steps to limit them."""
        proposed = self.draft_tokens - 1
        return proposed if self.algorithm in (LOOKUP, *ONE_PASS) else min(self.steps, proposed)

    @property
    def branches(self) -> float:
        """Candidates a position, as far as the verified tokens leave room for them; lookup's numbers stand for its tree."""
        if self.algorithm == LOOKUP:
            return 1.0
        return max(1.0, min(float(self.topk), (self.draft_tokens - 1) / max(1, self.steps)))

    @property
    def passes_count(self) -> int:
        """Passes of the drafter a verify step."""
        if self.algorithm == LOOKUP:
            return 0
        return 1 if self.algorithm in ONE_PASS else self.steps


def launched(rehearsal: Rehearsal, dice: random.Random) -> Rehearsal:
    """One launch's costs: all times stretched by one factor. `dice` unseeded: no two launches are alike."""
    factor = math.exp(dice.gauss(0.0, rehearsal.launch_sd_ratio)) if rehearsal.launch_sd_ratio else 1.0
    return stretched(rehearsal, factor)


def stretched(rehearsal: Rehearsal, factor: float) -> Rehearsal:
    """All times but the start-up's, so many times as long."""
    return structs.replace(rehearsal, **{name: factor * getattr(rehearsal, name) for name in LAUNCH_TIMES})


class CostModel:
    """Times of steps and chances of drafts for one server. `drafting` None: no speculation."""

    def __init__(self, rehearsal: Rehearsal, drafting: Drafting | None) -> None:
        self._costs = rehearsal
        self._drafting = drafting

    @property
    def proposed_tokens(self) -> int:
        """Draft tokens a verify step; 0 without speculation."""
        return self._drafting.draft_tokens - 1 if self._drafting else 0

    def decode_s(self, batch: int, *, graph: bool) -> Second:
        """One step of `batch` sequences: the target's, and the drafter's passes before it."""
        costs, drafting = self._costs, self._drafting
        target_s = costs.base_step_s * (1 + costs.batch_slope_ratio * (batch - 1))
        launch_s = 0.0 if graph else costs.target_launch_s
        if drafting is None:
            return target_s + launch_s
        return target_s * self.verify_growth(batch) + launch_s + self._draft_s(batch, drafting, graph=graph)

    def verify_growth(self, batch: int) -> float:
        """A verify step over a step of one token a sequence, from the extra tokens of the whole batch."""
        extra_tokens = batch * self.proposed_tokens
        return 1 + self._costs.verify_slope_ratio * extra_tokens**self._costs.verify_power_ratio if extra_tokens else 1.0

    def prefill_s(self, new_tokens: int) -> Second:
        """One prefill of so many prompt tokens, over all its sequences."""
        return self._costs.prefill_s + self._costs.prefill_token_s * new_tokens

    def chances(self, category: str) -> tuple[float, ...]:
        """Conditional chance of each position of a chain; empty without speculation, all zero for a wrong word."""
        drafting = self._drafting
        if drafting is None:
            return ()
        if drafting.synthetic_length is not None:
            sure = drafting.synthetic_length - 1
            return tuple(min(1.0, max(0.0, sure - place)) for place in range(drafting.longest_chain))
        if drafting.wrong_word:
            return (0.0,) * drafting.longest_chain
        plain = self._acceptance(drafting).chances(category, drafting.longest_chain)
        missed = (1 - self._costs.branch_ratio) ** (drafting.branches - 1)
        return tuple(1 - (1 - chance) * missed for chance in plain)

    def _acceptance(self, drafting: Drafting) -> Acceptance:
        if drafting.algorithm == LOOKUP:
            return self._costs.lookup_acceptance
        return self._costs.acceptance.get(drafting.drafter or "", self._costs.other_acceptance)

    def _draft_s(self, batch: int, drafting: Drafting, *, graph: bool) -> Second:
        if drafting.algorithm == LOOKUP:
            return self._costs.lookup_s * batch
        pass_s = self._costs.draft_step_s * (1 + self._costs.draft_batch_slope_ratio * (batch - 1))
        return drafting.passes_count * (pass_s + (0.0 if graph else self._costs.draft_launch_s))


class Draws:
    """One request's chance. A draft for output token t is accepted where `luck[t]` lies below the chance of its position, so
    the same prompt has the same luck in every variant and in every batch: only what is proposed differs."""

    def __init__(self, seed: int, prompt: str, request_seed: int | None = None) -> None:
        self._key = hashlib.sha256(f"{seed}\0{request_seed}\0{prompt}".encode()).hexdigest()
        self._dice = random.Random(f"{self._key}:luck")
        self._luck: list[float] = []

    def accepted(self, position_index: int, chances: Sequence[float]) -> int:
        """Draft tokens accepted of a chain that begins at this output token (from 0): the first miss ends it."""
        luck = self._luck
        while len(luck) < position_index + len(chances):
            luck.append(self._dice.random())
        for count, chance in enumerate(chances):
            if luck[position_index + count] >= chance:
                return count
        return len(chances)

    def answer_length(self, max_tokens: int, eos_ratio: float) -> int:
        """Tokens until the answer ends by itself, at most `max_tokens` + 1: then it does not end before the limit."""
        dice = random.Random(f"{self._key}:end")
        if eos_ratio > 0:
            for count in range(1, max_tokens + 1):
                if dice.random() < eos_ratio:
                    return count
        return max_tokens + 1

    def words(self, count: int) -> list[str]:
        """The answer's text, one token an entry; a longer answer begins with the shorter one's words."""
        dice = random.Random(f"{self._key}:words")
        return sentences([WORDS[int(dice.random() * len(WORDS))] for _ in range(count)])


def drafter_kind(path: str | None, method: str | None) -> DrafterKind:
    """From its `config.json` where the path is a folder; else what the suite or its own name says."""
    if path is None:
        return "other"
    try:
        config = json.loads(Path(path, "config.json").read_bytes())
        return "eagle3" if set(config["architectures"]) & set(EAGLE3_ARCHITECTURES) else "other"
    except (OSError, ValueError, KeyError, TypeError):
        named = "eagle3" in path.lower().replace("-", "").replace("_", "")
        return "eagle3" if named or method == "eagle3" else "other"
