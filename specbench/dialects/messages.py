"""What the grammars of all engines have in common: what a message is, and what the message of a death means."""

import re
from typing import Any, Final, NamedTuple

from specbench.dialects import LineKind

EXCEPTION: Final = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Timeout|Exit)\b(?::|$)")
"""The last line of a Python traceback."""


class Event(NamedTuple):
    """What a message is, without its prefixes."""

    kind: LineKind
    name: str
    value: dict[str, Any]


class Cause(NamedTuple):
    """A message and what it means. Groups of the pattern become values."""

    code: str
    pattern: re.Pattern[str]
    sentence: str
    advice: str
    order: int
    """0: a cause. 1: often a consequence of another rank's death. 2: only a consequence."""


def cause(code: str, pattern: str, sentence: str, advice: str = "", order: int = 0) -> Cause:
    """`pattern` is searched in the message."""
    return Cause(code, re.compile(pattern), sentence, advice, order)


WIDTH_MISMATCH: Final = cause(
    "aux_layer_width_mismatch",
    r"mat1 and mat2 shapes cannot be multiplied "
    r"\((?P<rows>\d+)x(?P<width>\d+) and (?P<expected_width>\d+)x(?P<out_width>\d+)\)",
    "the drafter's first layer takes another width than the target hands over",
    "the drafter was trained for another target or another count of auxiliary layers; compare its config.json "
    "(target_hidden_size, eagle_aux_hidden_state_layer_ids) with the target's",
)
"""PyTorch's own words, whichever engine runs it."""
