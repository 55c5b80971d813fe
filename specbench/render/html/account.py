"""The sections that let a reader check: failures, parity, findings, environment, commands."""

from collections.abc import Iterator, Sequence
from typing import Final

from specbench.analysis import Judgement
from specbench.analysis.dossier import Dossier, Launch, value_text
from specbench.analysis.parity import Difference
from specbench.render import prose
from specbench.render.html import markup
from specbench.render.html.document import section
from specbench.render.html.markup import Markup, element, joined, text
from specbench.render.html.table import table
from specbench.units import counted

KIND_COUNT: Final = 2
"""Findings of one code that stand open."""
COLOR_OF_SEVERITY: Final = {"error": "bad", "warning": "doubt", "note": "plain"}


def failures(launches: Sequence[Launch]) -> Iterator[Markup]:
    """Each failed launch with the end of its log."""
    for launch in launches:
        if launch.failure is not None:
            yield element("p", element("strong", f"{launch.name} failed: "), markup.prose(launch.failure))
            if launch.log_tail:
                lines = joined([text(line) for line in launch.log_tail])
                yield element(
                    "details", element("summary", f"End of its log, {launch.name}"), element("pre", lines), class_="told"
                )


def parity(dossier: Dossier) -> Markup:
    """Settings that the servers resolved otherwise than the baseline's."""
    asked = [one for one in dossier.differences if one.asked]
    doubtful = [one for one in dossier.differences if not one.asked]
    parts = []
    if doubtful:
        parts.append(
            element("p", "The suite does not ask for these differences: each may explain a speed-up, or the lack of one.")
        )
        parts.append(_differences("Differences that nobody asked for", doubtful))
    elif len(set(dossier.unresolved)) < len(dossier.traits) and dossier.judgement.baseline not in dossier.unresolved:
        told = "What the servers told of their settings agrees with the baseline, but for what the suite asks for."
        parts.append(
            element("p", told if len(dossier.traits) > 1 else "There is one variant, and nothing to compare it with.")
        )
    if dossier.unresolved:
        names = ", ".join(dossier.unresolved)
        parts.append(element("p", f"Did not tell their settings, so nothing is known of them: {names}."))
    if asked:
        inner = _differences("Differences that the suite asks for", asked)
        parts.append(element("details", element("summary", f"{len(asked)} differences that the suite asks for"), inner))
    return section("parity", "Parity with the baseline", *parts)


def _differences(caption: str, differences: Sequence[Difference]) -> Markup:
    rows = [(one.variant, one.setting, value_text(one.baseline_value), value_text(one.variant_value)) for one in differences]
    headings = ("variant", "setting", "baseline", "this variant")
    return element("div", table(caption, headings, rows, numeric=[False] * 4), class_="wrapped")


def findings(judgement: Judgement) -> Markup:
    """Errors first, each with its remedy."""
    remarks = prose.remarks(judgement.findings)
    if not remarks:
        return section("findings", "Findings", element("p", "None."))
    kinds: dict[str, list[prose.Remark]] = {}
    for one in remarks:
        kinds.setdefault(one.code, []).append(one)
    parts = [part for kind in kinds.values() for part in _kind(kind)]
    return section("findings", "Findings", element("ul", joined(parts), class_="findings"))


def _kind(remarks: Sequence[prose.Remark]) -> Iterator[Markup]:
    """The first of a kind; many others are folded."""
    shown = remarks if len(remarks) <= KIND_COUNT else remarks[:1]
    yield from map(_finding, shown)
    if rest := remarks[len(shown) :]:
        summary = element("summary", f"{counted(len(rest), 'more finding')} of the kind {rest[0].code}")
        inner = element("ul", joined(map(_finding, rest)), class_="findings")
        yield element("li", element("details", summary, inner, class_="more"))


def _finding(remark: prose.Remark) -> Markup:
    head = [element("span", remark.severity, class_=f"tag {COLOR_OF_SEVERITY[remark.severity]}"), Markup(" ")]
    head.append(element("code", remark.code))
    if remark.variants:
        head.append(text(": " + ", ".join(remark.variants)))
    parts = [element("div", *head), element("p", markup.prose(remark.message))]
    if remark.evidence:
        parts.append(element("ul", *[element("li", one) for one in remark.evidence], class_="quiet"))
    if remark.remedy:
        parts.append(element("p", element("strong", "Do: "), markup.prose(remark.remedy)))
    return element("li", *parts)


def environment(dossier: Dossier) -> Markup:
    """What it ran on; what can't be read says why."""
    rows = [_told(name, value) for name, value in dossier.environment]
    drawn = table("What the run ran on, and with which prompts", ("what", "value"), rows, numeric=[False, False])
    return section("environment", "Environment", element("div", drawn, class_="wrapped"))


def _told(name: str, value: str) -> tuple[str, str]:
    """Bytes as gigabytes."""
    if name.endswith("_bytes") and value.isdigit():
        return name.removesuffix("_bytes").replace("_", " "), f"{int(value) / 1e9:.1f} GB"
    return name.replace("_", " "), value


def commands(dossier: Dossier) -> Markup:
    """To do it again, and how each server was started."""
    again = element("pre", joined([text(line) for line in dossier.commands]))
    servers = [one for launch in dossier.launches if launch.command for one in _server(launch)]
    parts = [element("p", "The same suite again, from the copy in the run's folder, then its tables and this page:"), again]
    if servers:
        count = sum(bool(launch.command) for launch in dossier.launches)
        title = "The server's command line" if count == 1 else f"The {count} servers' command lines"
        parts.append(element("details", element("summary", title), joined(servers), class_="told"))
    return section("commands", "Commands to reproduce", *parts)


def _server(launch: Launch) -> Iterator[Markup]:
    yield element("h3", launch.name)
    yield element("pre", text(launch.command))
