"""Doubts and faults that a launch shows before it starts: its command line against both checkpoints and the planned load.

Pure: whoever calls has read the checkpoints. A fact that is not known silences the checks that need it.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec
from msgspec import Struct, field
from packaging.version import Version

from specbench.analysis import Finding, Severity
from specbench.checkpoints import Checkpoint
from specbench.checkpoints.kinds import Kind, kind_of
from specbench.checkpoints.weights import Weights
from specbench.dialects.sglang_version import parse
from specbench.preflight.words import Speculating, speculating

ALLOW_LONGER: Final = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
PAGE: Final = "docs/checks.md"


class Load(Struct, frozen=True, kw_only=True):
    """What is planned; None where it is not known."""

    max_concurrency: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    fewest_steps_count: int | None = None
    """Decode steps of the smallest level, when every draft token is accepted."""
    ignore_eos: bool = False
    random_prompts: bool = False
    busiest: str = ""
    """Workload with the most streams; empty, as below, where no suite names one."""
    longest: str = ""
    """Workload with the longest sequence."""
    shortest: str = ""
    """Workload with the fewest steps."""
    ignoring: tuple[str, ...] = ()
    """Workloads that set `ignore_eos`."""
    random: tuple[str, ...] = ()
    """Workloads of random words."""

    @property
    def longest_tokens(self) -> int | None:
        """The longest sequence: prompt and answer."""
        if self.max_input_tokens is None or self.max_output_tokens is None:
            return None
        return self.max_input_tokens + self.max_output_tokens


def of_workload(*names: str) -> str:
    """` of workload 'chat'`, or nothing where no name is known."""
    listed = ", ".join(f"'{name}'" for name in names if name)
    return f" of workload{'s' if len(names) > 1 else ''} {listed}" if listed else ""


class Facts(Struct, frozen=True, kw_only=True, dict=True):
    """All that a check may look at."""

    engine: str
    version: str | None = None
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    target: Checkpoint | None = None
    draft: Checkpoint | None = None
    load: Load = Load()
    gpu_memory_bytes: int | None = None
    """Of the smallest GPU; None where there is none or it is not known."""
    draft_weights: tuple[Weights, ...] = ()
    """Read only when asked for."""
    variant: str | None = None
    synthetic: bool = False
    """The suite asks for a synthetic acceptance, so that it is told as one."""

    @cached_property
    def words(self) -> Speculating:
        """What the command line says, under SGLang's names whichever engine it is."""
        return speculating(self.engine, self.argv, self.version, self.target)

    @cached_property
    def kind(self) -> Kind:
        """What the drafter was trained as."""
        return kind_of(self.draft) if self.draft is not None else "unknown"

    @cached_property
    def release(self) -> Version | None:
        return parse(self.version)

    def before(self, version: str) -> bool:
        """Whether the engine is known to be older."""
        return self.release is not None and self.release < Version(version)

    def since(self, version: str) -> bool:
        """Whether it is this or newer; one of unknown version is taken for the newest."""
        return not self.before(version)

    @property
    def effective_draft_tokens(self) -> int | None:
        """The draft-token count that the server will really use; None without speculation."""
        return self.words.effective_draft_tokens

    @property
    def algorithm(self) -> str | None:
        """SGLang's word, in capitals; None without speculation."""
        return self.words.algorithm

    @property
    def drafts_by_eagle3(self) -> bool:
        """An EAGLE-3 drafter under EAGLE3: its own fc and head are used."""
        return (
            self.algorithm == "EAGLE3" and self.draft is not None and self.kind not in ("eagle1", "plain", "mtp", "dflash")
        )

    def say(self, code: str, severity: Severity, message: str, evidence: str = "", remedy: str = "") -> Finding:
        """A finding about this variant."""
        return Finding(code=code, severity=severity, variant=self.variant, message=message, evidence=evidence, remedy=remedy)


def find(facts: Facts) -> tuple[Finding, ...]:
    """What all checks say, errors first."""
    from specbench.preflight import checks

    found = [finding for name in checks.names() for finding in checks.get(name)(facts)]
    order: dict[str, int] = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda one: order[one.severity]))


def as_json(findings: tuple[Finding, ...]) -> bytes:
    """A list of objects, each with the page that explains its code."""
    listed = [{**msgspec.to_builtins(one), "page": f"{PAGE}#{one.code}"} for one in findings]
    return msgspec.json.format(msgspec.json.encode(listed), indent=2)


__all__ = ["ALLOW_LONGER", "PAGE", "Facts", "Load", "as_json", "find", "of_workload"]
