"""A comparison as annotations of a GitHub job: one workflow command a line, errors first."""

from collections.abc import Iterator

from specbench.analysis.comparing import Comparison, VariantComparison
from specbench.render import words
from specbench.render.comparison import words as said

LEVELS = {"fail": "error", "refused": "error", "inconclusive": "warning", "pass": "notice"}


def render(comparison: Comparison) -> str:
    """Ends with a line break."""
    return "".join(f"{line}\n" for variant in said.ranked(comparison) for line in _commands(comparison, variant))


def _commands(comparison: Comparison, variant: VariantComparison) -> Iterator[str]:
    stamp = "SIMULATED · " if comparison.simulated else ""
    title = f"{stamp}{said.VERDICTS[variant.verdict]}: {words.clean(comparison.suite_name)}"
    text = "\n".join((said.headline(variant, comparison.margin_ratio), *said.refusals(variant)))
    yield f"::{LEVELS[variant.verdict]} title={escaped(title, ':,')}::{escaped(text)}"


def escaped(text: str, also: str = "") -> str:
    """As GitHub's own toolkit does."""
    for sign in f"%\r\n{also}":
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
