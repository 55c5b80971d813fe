"""The words around the tables: heading, a sentence a variant, findings. Terminal and Markdown draw them."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from specbench.analysis import Finding, Judgement, Part, Profile
from specbench.render import words
from specbench.render.words import clean

FEWEST_ALIKE = 3
"""Positions at the end of a draft that are told together."""
EVIDENCE_COUNT = 3
"""So many variants' numbers stand under one finding."""


class Remark(Struct, frozen=True, kw_only=True):
    """Findings that say the same of several variants, as one."""

    code: str
    severity: str
    variants: tuple[str, ...]
    message: str
    evidence: tuple[str, ...]
    remedy: str


def title(judgement: Judgement) -> str:
    """`specbench · kimi · SIMULATED`."""
    text = f"specbench · {clean(judgement.suite_name)}"
    return f"{text} · SIMULATED" if judgement.simulated else text


def circumstances(judgement: Judgement) -> str:
    """Model, engines, baseline, when and where."""
    parts = (
        f"model {judgement.model}",
        ", ".join(judgement.engines) or "no engine was launched",
        f"baseline '{judgement.baseline}'",
        f"started {judgement.started_utc}",
        judgement.run_folder,
    )
    return " · ".join(clean(part) for part in parts)


def sentences(judgement: Judgement) -> tuple[tuple[str, str], ...]:
    """Variant and its sentence."""
    return tuple((clean(one.variant), clean(one.sentence)) for one in judgement.verdicts)


def remarks(findings: Sequence[Finding]) -> tuple[Remark, ...]:
    """In the order given; the same message of several variants becomes one remark."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.code, one.severity, one.message, one.remedy), []).append(one)
    return tuple(_remark(group) for group in groups.values())


def _remark(group: Sequence[Finding]) -> Remark:
    first = group[0]
    variants = tuple(clean(one.variant) for one in group if one.variant is not None)
    evidence = [one for one in group if one.evidence]
    shown = tuple(
        f"{clean(one.variant)}: {clean(one.evidence)}" if len(group) > 1 and one.variant else clean(one.evidence)
        for one in evidence[:EVIDENCE_COUNT]
    )
    more = len(evidence) - len(shown)
    return Remark(
        code=first.code,
        severity=first.severity,
        variants=variants,
        message=clean(first.message),
        evidence=(*shown, f"and {more} more") if more > 0 else shown,
        remedy=clean(first.remedy),
    )


def acceptance(judgement: Judgement) -> tuple[tuple[str, str], ...]:
    """Variant and what its acceptance is made of, where a run has more than one part to tell."""
    return tuple((words.clean(one.variant), _parts(one)) for one in judgement.profiles if _parts(one))


def _parts(profile: Profile) -> str:
    named = (
        ("by position", _positions(profile.position_ratio)),
        ("by category", _told(profile.categories)),
        ("by depth in tokens", _told(profile.depths)),
        ("over the run", [words.length(one.accept_length) for one in profile.quarters]),
    )
    return "; ".join(f"{name} {', '.join(parts)}" for name, parts in named if len(parts) > 1)


def _positions(ratios: Sequence[float]) -> list[str]:
    """Percents that no line breaks apart; the last ones together where they are alike."""
    shown = [f"{words.percent(ratio)}\N{NO-BREAK SPACE}%" for ratio in ratios]
    alike_count = next((count for count, one in enumerate(reversed(shown)) if one != shown[-1]), len(shown))
    if alike_count < FEWEST_ALIKE or alike_count == len(shown):
        return shown
    first = len(shown) - alike_count
    return [*shown[:first], f"{shown[-1]} from position {first + 1} on"]


def _told(parts: Iterable[Part]) -> list[str]:
    return [f"{words.clean(one.name)} {words.length(one.accept_length)}" for one in parts]
