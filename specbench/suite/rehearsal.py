"""The simulated engine's cost model, as a suite states it. `docs/simulated-engine.md` explains it with its formulas."""

from typing import Annotated

from msgspec import Meta, Struct, field

from specbench.suite.faults import Fault

VERSION_PATTERN = r"^\d+\.\d+(\.\d+)?((\.post|rc)\d+)?$"
Share = Annotated[float, Meta(ge=0, le=1)]
Cost = Annotated[float, Meta(ge=0)]


def _s(description: str) -> Meta:
    return Meta(ge=0, description=f"Seconds: {description}")


class Acceptance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a drafter's tokens are accepted. Position 1 is the first draft token of a step; position j counts only when
    j - 1 was accepted."""

    first_ratio: Annotated[dict[str, Share], Meta(description="Chance of position 1, by the prompt's category")] = field(
        default_factory=dict
    )
    other_ratio: Annotated[Share, Meta(description="Chance of position 1 in every other category")] = 0.6
    second_ratio: Annotated[
        Share | None, Meta(description="Chance of position 2, where it does not follow from the first")
    ] = None
    decay_ratio: Annotated[Share, Meta(description="Each later position's chance over that of the one before")] = 0.95

    def chances(self, category: str, positions_count: int) -> tuple[float, ...]:
        """Conditional chance that position j is accepted given that j - 1 was, for j = 1 … positions_count."""
        first = self.first_ratio.get(category, self.other_ratio)
        second = first * self.decay_ratio if self.second_ratio is None else self.second_ratio
        later = (second * self.decay_ratio**index for index in range(positions_count - 1))
        return (first, *later)[:positions_count]


GOOD_DRAFTER = Acceptance(
    first_ratio={
        "chat": 0.51,
        "writing": 0.48,
        "reasoning": 0.56,
        "math": 0.59,
        "summarize": 0.58,
        "extract": 0.66,
        "code": 0.69,
        "copy": 0.80,
    },
    other_ratio=0.57,
)
"""A drafter trained for its target: acceptance length about 2.1 with 4 draft tokens over chat, code and math."""

PROMPT_LOOKUP = Acceptance(
    first_ratio={"copy": 0.60, "extract": 0.40, "summarize": 0.25, "code": 0.25},
    other_ratio=0.08,
    second_ratio=0.80,
    decay_ratio=0.99,
)
"""Prompt lookup seldom finds its words in the prompt, and then goes on for long."""


class Rehearsal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of the simulated engine. The defaults stand for Kimi-K2.5 on 8 GPUs."""

    version: Annotated[
        str,
        Meta(
            pattern=VERSION_PATTERN,
            description="SGLang version whose log and endpoints are imitated",
        ),
    ] = "0.5.23"

    base_step_s: Annotated[
        float, Meta(gt=0, description="Seconds: the target's step, one sequence, one token, graphs on")
    ] = 0.0111
    batch_slope_ratio: Annotated[Cost, Meta(description="Growth of the target's step a further sequence")] = 0.03
    verify_slope_ratio: Annotated[Cost, Meta(description="Growth of a verify step for the batch's first extra token")] = (
        0.227
    )
    verify_power_ratio: Annotated[
        float, Meta(ge=0, le=2, description="Power of batch × (draft tokens - 1) in that growth; 1 is compute-bound")
    ] = 0.35
    target_launch_s: Annotated[float, _s("added to the target's step without CUDA graphs")] = 0.0145

    draft_step_s: Annotated[float, _s("one pass of the drafter, one sequence, graphs on")] = 0.001
    draft_batch_slope_ratio: Annotated[Cost, Meta(description="Growth of the drafter's pass a further sequence")] = 0.02
    draft_launch_s: Annotated[float, _s("added to each pass of the drafter without CUDA graphs")] = 0.0015
    lookup_s: Annotated[float, _s("prompt lookup, a verify step and sequence")] = 0.0001

    prefill_s: Annotated[float, _s("a prefill, whatever its length")] = 0.015
    prefill_token_s: Annotated[float, _s("a prompt token of a prefill that is not in the prefix cache")] = 0.00005

    acceptance: Annotated[dict[str, Acceptance], Meta(description="By the drafter's name in the suite")] = field(
        default_factory=dict
    )
    other_acceptance: Annotated[Acceptance, Meta(description="Of every drafter not named in `acceptance`")] = GOOD_DRAFTER
    lookup_acceptance: Annotated[Acceptance, Meta(description="Of prompt lookup")] = PROMPT_LOOKUP
    branch_ratio: Annotated[Share, Meta(description="Share of the misses that each further branch of a tree catches")] = 0.2

    eos_ratio: Annotated[Share, Meta(description="Chance that an answer ends at a token, unless EOS is ignored")] = 0.0
    load_s: Annotated[float, _s("the start-up: weights, KV cache, graphs, drafter")] = 0.2
    capacity_tokens: Annotated[int, Meta(ge=1, description="Slots of the KV cache")] = 1_000_000
    context_length: Annotated[int, Meta(ge=1, description="Longest prompt and answer together, where no flag says so")] = (
        262_144
    )
    faults: Annotated[
        dict[str, tuple[Fault, ...]],
        Meta(description="By variant: how its simulated server misbehaves, such as crash_loading or http_500:3"),
    ] = field(default_factory=dict)

    def fault_words(self, variant: str) -> tuple[str, ...]:
        """What is added to its simulated server's command line."""
        return tuple(word for one in self.faults.get(variant, ()) for word in ("--fault", one))
