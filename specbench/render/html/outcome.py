"""The answer first: who pays, who does not, why, and what to do."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from specbench.analysis import Judgement, Summary, VariantVerdict
from specbench.render import words
from specbench.render.html.document import section
from specbench.render.html.markup import Markup, element, joined, prose
from specbench.units import counted

EVEN_MARGIN_RATIO: Final = 0.03
"""As in the sentences: a speed-up this close to 1 is called even."""

GROUPS: Final = (
    ("baseline", "baseline", "plain"),
    ("pays", "pays everywhere", "good"),
    ("mixed", "pays in part", "good"),
    ("even", "neither pays nor costs", "plain"),
    ("loses", "does not pay", "bad"),
    ("dead", "dead: no draft accepted", "bad"),
    ("idle", "is not speculating", "bad"),
    ("synthetic", "synthetic acceptance: not ranked", "doubt"),
    ("apart", "can't be compared", "doubt"),
    ("failed", "failed", "bad"),
    ("partial", "stopped: measured in part", "doubt"),
    ("unknown", "not measured", "doubt"),
    ("absent", "not asked for", "plain"),
)
"""Code, words and colour of what became of a variant, in the order in which they are told."""


class Outcome(Struct, frozen=True, kw_only=True):
    """A variant's verdict as the page tells it."""

    variant: str
    group: str
    sentence: str
    remedies: tuple[str, ...]
    best: Summary | None
    """The level of its highest speed-up."""


def outcomes(judgement: Judgement) -> tuple[Outcome, ...]:
    """In the order of `GROUPS`, those that pay best first."""
    order = [code for code, _, _ in GROUPS]
    found = [_outcome(judgement, one) for one in judgement.verdicts]
    return tuple(sorted(found, key=lambda one: (order.index(one.group), -_speedup(one.best))))


def _outcome(judgement: Judgement, verdict: VariantVerdict) -> Outcome:
    rows = [row for row in judgement.summaries if row.variant == verdict.variant and row.speedup_ratio is not None]
    group = _group(judgement, verdict, [_speedup(row) for row in rows])
    return Outcome(
        variant=verdict.variant,
        group=group,
        sentence=verdict.sentence,
        remedies=_remedies(judgement, verdict.variant, group, rows),
        best=max(rows, key=_speedup, default=None),
    )


def _group(judgement: Judgement, verdict: VariantVerdict, speedups: Sequence[float]) -> str:
    told = next((group for code, group in CODES.items() if code in verdict.verdicts), None)
    if "not_asked_for" in verdict.verdicts:
        return "absent"
    if verdict.variant == judgement.baseline:
        return "failed" if _unserved(judgement, verdict.variant) else "baseline"
    if told is not None:
        return told
    if not speedups:
        return _without_speedup(judgement, verdict)
    if min(speedups) >= 1 + EVEN_MARGIN_RATIO:
        return "pays"
    if max(speedups) >= 1 + EVEN_MARGIN_RATIO:
        return "mixed"
    return "even" if min(speedups) > 1 - EVEN_MARGIN_RATIO else "loses"


CODES: Final = {"synthetic": "synthetic", "dead_drafter": "dead", "speculation_inactive": "idle"}
"""Verdicts that outweigh every speed-up."""


def _without_speedup(judgement: Judgement, verdict: VariantVerdict) -> str:
    if "failed" in verdict.verdicts and _unserved(judgement, verdict.variant):
        return "failed"
    if _unserved(judgement, verdict.variant):
        return "unknown"
    return "partial" if "partial" in verdict.verdicts else "apart"


def _unserved(judgement: Judgement, variant: str) -> bool:
    """Whether no request of it ended well."""
    return all(row.request_count == row.failed_count for row in judgement.summaries if row.variant == variant)


def _speedup(row: Summary | None) -> float:
    return row.speedup_ratio or 0.0 if row is not None else 0.0


def _remedies(judgement: Judgement, variant: str, group: str, rows: Sequence[Summary]) -> tuple[str, ...]:
    """Of what was found about it, the gravest two; else by its group."""
    own = [one.remedy for one in judgement.findings if one.variant == variant and one.code in OWN and one.remedy]
    if variant == judgement.baseline:
        return tuple(dict.fromkeys(own))[:2]
    told = [ADVICE[group], *own] if group in ADVICE and any(row.proposed_tokens is not None for row in rows) else own
    if judgement.simulated and group in ("pays", "mixed"):
        return tuple(dict.fromkeys(["Measure it for real: a simulation decides nothing.", *own]))[:2]
    if group == "mixed":
        gains = [words.place(row.workload, row.concurrency) for row in rows if _speedup(row) >= 1 + EVEN_MARGIN_RATIO]
        told = [f"Use it only where it gains: {'; '.join(gains)}.", *own]
    return tuple(dict.fromkeys(told))[:2]


OWN: Final = {
    "concurrency_capped",
    "dead_drafter",
    "draft_depth_too_large",
    "failed_requests",
    "graphs_off",
    "launch_failed",
    "not_comparable",
    "speculation_inactive",
}
"""Findings about the variant itself; others doubt the measurement."""
ADVICE: Final = {
    "pays": "Use it.",
    "even": "Leave it off: it gains nothing here.",
    "loses": "Leave it off at this load.",
}
"""Of variants that speculate."""


def lead(judgement: Judgement) -> str:
    """The whole run in one or two sentences."""
    told = outcomes(judgement)
    others = [one for one in told if one.variant != judgement.baseline]
    if all(_unserved(judgement, one.variant) for one in told):
        return "Nothing was measured: no request of any variant ended well."
    if not others:
        return "One variant was measured; there is none to compare it with."
    paying = [one for one in others if one.group in ("pays", "mixed")]
    if not paying:
        return f"No variant is faster than '{judgement.baseline}' at any level that can be compared."
    best = max(paying, key=lambda one: _speedup(one.best))
    assert best.best is not None
    whole = counted(len(others), "variant")
    count = f"{len(paying)} of {whole} {'pays' if len(paying) == 1 else 'pay'} somewhere"
    where = words.place(best.best.workload, best.best.concurrency)
    return f"{count}. The largest gain: {best.variant} with {words.times(best.best.speedup_ratio)}× on {where}."


def outcome_section(judgement: Judgement) -> Markup:
    """The verdict, variant by variant."""
    titles = {code: (title, color) for code, title, color in GROUPS}
    items = joined([_item(one, *titles[one.group]) for one in outcomes(judgement)])
    return section(
        "verdict", "Verdict", element("p", lead(judgement), class_="lead"), element("ul", items, class_="verdicts")
    )


def _item(one: Outcome, title: str, color: str) -> Markup:
    name = element("div", element("h3", one.variant), element("span", title, class_=f"tag {color}"))
    sentence = prose(one.sentence[:1].upper() + one.sentence[1:] + ("" if one.sentence.endswith(".") else "."))
    remedies = [element("p", element("strong", "Do: "), prose(" ".join(one.remedies)))] if one.remedies else []
    return element("li", name, element("div", element("p", sentence), *remedies))
