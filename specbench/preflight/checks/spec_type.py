"""llama.cpp loads a draft model and does not use it unless --spec-type says how."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts
from specbench.preflight.checks import Check


def check(facts: Facts) -> Iterable[Finding]:
    """At most one."""
    if (
        facts.engine not in ("llamacpp", "llama.cpp", "llama_cpp")
        or facts.words.draft_path is None
        or facts.algorithm is not None
    ):
        return
    yield facts.say(
        "draft_model_without_spec_type",
        "error",
        "llama.cpp loads the draft model, spends memory on it and drafts nothing: --spec-type is missing.",
        f"-md {facts.words.draft_path}, no --spec-type",
        "Add --spec-type draft-simple (in a suite: `method: draft_model`).",
    )


CHECK: Final[Check] = check
