"""A comparison as JUnit XML, as Jenkins, GitLab and GitHub's readers know it: a suite a variant, a case a primary metric.

FAIL is a failure, INCONCLUSIVE is skipped (nothing was shown), not comparable is an error.
"""

import io
import re
from typing import Final
from xml.etree import ElementTree

from specbench.analysis.comparing import Answer, Comparison, VariantComparison
from specbench.render import words
from specbench.render.comparison import words as said

MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def render(comparison: Comparison) -> str:
    """Ends with a line break."""
    return written(tree(comparison))


def written(root: ElementTree.Element) -> str:
    """As text."""
    ElementTree.indent(root)
    octets = io.BytesIO()
    ElementTree.ElementTree(root).write(octets, encoding="utf-8", xml_declaration=True)
    return octets.getvalue().decode() + "\n"


def tree(comparison: Comparison) -> ElementTree.Element:
    """Suites with their counts."""
    root = ElementTree.Element("testsuites", name=said.title(comparison))
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for variant in comparison.variants:
        counts = _suite(root, comparison, variant)
        totals = {name: totals[name] + counts[name] for name in totals}
    for name, count in totals.items():
        root.set(name, str(count))
    return root


def _suite(root: ElementTree.Element, comparison: Comparison, variant: VariantComparison) -> dict[str, int]:
    gates = [one.gate for one in variant.answers]
    refused = variant.verdict == "refused"
    counts = {
        "tests": 1 if refused else len(gates),
        "failures": gates.count("FAIL"),
        "errors": int(refused),
        "skipped": sum(gate in ("INCONCLUSIVE", None) for gate in gates),
    }
    suite = ElementTree.SubElement(root, "testsuite", name=words.clean(variant.name))
    for name, count in counts.items():
        suite.set(name, str(count))
    suite.set("time", "0")
    if MOMENT.fullmatch(variant.b.started_utc):
        suite.set("timestamp", variant.b.started_utc.removesuffix("Z"))
    _properties(suite, comparison)
    owner = f"specbench.{words.clean(comparison.suite_name)}.{words.clean(variant.name)}"
    if refused:
        case = ElementTree.SubElement(suite, "testcase", name="comparable", classname=owner, time="0")
        error = ElementTree.SubElement(case, "error", type="not comparable")
        error.set("message", said.headline(variant, comparison.margin_ratio))
        error.text = "\n".join(said.refusals(variant))
    for answer in variant.answers:
        _case(suite, owner, answer)
    output = ElementTree.SubElement(suite, "system-out")
    output.text = said.headline(variant, comparison.margin_ratio)
    return counts


def _properties(suite: ElementTree.Element, comparison: Comparison) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    values = {
        "a": comparison.a_folder,
        "b": comparison.b_folder,
        "margin_ratio": f"{comparison.margin_ratio:g}",
        "alpha_ratio": f"{comparison.alpha_ratio:g}",
        "simulated": str(comparison.simulated).lower(),
    }
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=words.clean(value))


def _case(suite: ElementTree.Element, owner: str, answer: Answer) -> None:
    metric = said.label(answer.change.metric)
    case = ElementTree.SubElement(suite, "testcase", name=metric, classname=owner, time="0")
    text = ", ".join(f"{name} {value}" for name, value in zip(said.HEADINGS[1:], said.row(answer)[1:], strict=True))
    if answer.gate == "FAIL":
        failure = ElementTree.SubElement(case, "failure", type="worse than the margin", message=f"{metric}: {text}")
        failure.text = text
    elif answer.gate != "PASS":
        reason = answer.gate_note or "these launches can't tell"
        ElementTree.SubElement(case, "skipped", message=f"{reason}: {text}")
