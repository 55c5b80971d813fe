"""Three faults of which llama.cpp's server says nothing: each is told as speculation that never came, with its cause."""

import shlex
from pathlib import Path
from typing import Final

import pytest

from specbench import engines
from specbench.analysis.judge import judge_run
from specbench.execution.observe import observed
from specbench.records import Observation
from specbench.store import StoredTrial
from specbench.suite import Speculation
from tests.unit.analysis.runs import request, run, suite, trial, variant

CAPTURES: Final = Path(__file__).parents[2] / "data" / "captures"
ASKED: Final = Speculation(method="draft_model", drafter="head", draft_tokens=5)
TYPELESS: Final = "llamacpp-b11434-draft-model-without-spec-type"


def launched(name: str, capture: str) -> StoredTrial:
    """A launch with that log, whose first line is its command; no answer of it drafted."""
    lines = (CAPTURES / f"{capture}.log").read_text(encoding="utf-8").splitlines()
    engine = engines.get("llamacpp")
    parsed = [engine.parse_log_line(line) for line in lines]
    told = [(line.kind, observed(line)) for line in parsed]
    return trial(
        name,
        [request(token_source="usage_per_chunk", proposed_tokens=0)],
        [Observation(at_s=0.0, source="log", name=kind, value=value) for kind, value in told if value is not None],
        engine="llamacpp",
        argv=tuple(shlex.split(lines[0].lstrip("# "))),
    )


@pytest.mark.parametrize(
    ("capture", "speculation", "cause", "line", "remedy"),
    [
        (TYPELESS, None, "without --spec-type it is never asked", "loading draft model 'models/smol", "Add --spec-type"),
        (TYPELESS, ASKED, "without --spec-type it is never asked", "loading draft model 'models/smol", "Add --spec-type"),
        (
            "llamacpp-b11434-vocab-mismatch-serves-without-speculation",
            ASKED,
            "the drafter has another vocabulary than the target",
            "draft model vocab type must match target model",
            "Use a drafter made for this target's tokenizer.",
        ),
        (
            "llamacpp-b11434-eagle3-asked-of-plain-draft-serves-without-speculation",
            ASKED,
            "an EAGLE-3 drafter was asked for and the given one is none",
            "draft model is not eagle3 (expected 3 extract layers, got 0)",
            "Give an EAGLE-3 drafter",
        ),
    ],
)
def test_a_silent_fault_names_its_cause(
    capture: str, speculation: Speculation | None, cause: str, line: str, remedy: str
) -> None:
    asked = suite([variant("plain", engine="llamacpp"), variant("spec", engine="llamacpp", speculation=speculation)])
    found = judge_run(run(asked, [launched("plain", "llamacpp-b11434-baseline"), launched("spec", capture)]))
    assert [row.verdict for row in found.summaries] == ["baseline", "speculation_inactive"]
    (finding,) = [one for one in found.findings if one.code == "speculation_inactive"]
    assert (finding.variant, finding.severity) == ("spec", "error")
    assert cause in finding.message
    assert line in finding.evidence
    assert finding.remedy.startswith(remedy)
    assert cause in next(one.sentence for one in found.verdicts if one.variant == "spec")


def test_a_variant_that_loads_no_drafter_is_asked_for_nothing() -> None:
    asked = suite([variant("plain", engine="llamacpp"), variant("other", engine="llamacpp")])
    found = judge_run(run(asked, [launched(name, "llamacpp-b11434-baseline") for name in ("plain", "other")]))
    assert [row.verdict for row in found.summaries] == ["baseline", "healthy"]
    assert not [one for one in found.findings if one.code == "speculation_inactive"]
