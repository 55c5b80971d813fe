"""Acceptance faked by the environment or by flags, without the suite having asked for a synthetic arm."""

from collections.abc import Iterable, Sequence
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence
from specbench.records import TrialRecord

VARIABLES: Final = ("SGLANG_SIMULATE_ACC_LEN", "SGLANG_SIMULATE_ACC_TOKEN_MODE")
FLAGS: Final = ("--spec-synth-len", "--spec-synth-rates", "--speculative-synthetic-length")
OFF: Final = ("", "0", "-1")


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant that was launched so."""
    for name, arm in evidence.arms.items():
        trials = [one.record for one in evidence.stored.trials if one.record.trial.variant == name]
        found = [] if arm.is_synthetic else list(dict.fromkeys(text for one in trials for text in _faked(one)))
        if found:
            yield Finding(
                code="faked_acceptance",
                severity="error",
                variant=name,
                message="The acceptance length was faked: no figure of this variant is real.",
                evidence=", ".join(found),
                remedy="Take it out of `env` and `args`. To measure what a step costs, write `synthetic_length` under "
                "`speculation`: such a variant is labelled and never ranked.",
            )


def _faked(record: TrialRecord) -> Iterable[str]:
    yield from (f"{name}={record.env[name]}" for name in VARIABLES if record.env.get(name, "") not in OFF)
    yield from (word for word in _flags(record.argv))


def _flags(argv: Sequence[str]) -> Iterable[str]:
    return (word for word in argv if word.partition("=")[0] in FLAGS)


CHECK: Final[Check] = check
