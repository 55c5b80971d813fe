"""Settings under which the acceptance that is measured is not the real one, or none is seen."""

from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.preflight import Facts, of_workload
from specbench.preflight.checks import Check

FAKED: Final = ("SGLANG_SIMULATE_ACC_LEN", "SGLANG_SIMULATE_ACC_TOKEN_MODE")
FAKED_FLAGS: Final = ("spec-synth-len", "spec-synth-rates", "speculative-synthetic-length")
QUIET: Final = ("warning", "warn", "error", "critical")
USUAL_INTERVAL: Final = 40


def check(facts: Facts) -> Iterable[Finding]:
    """Several may be true at once."""
    yield from _faked(facts)
    if facts.algorithm is None:
        return
    if facts.load.ignore_eos:
        yield facts.say(
            "ignore_eos_with_acceptance",
            "warning",
            "`ignore_eos` lets answers run past their end, into text that is accepted unlike real answers.",
            f"ignore_eos: true{of_workload(*facts.load.ignoring)}",
            "Leave `ignore_eos` out, or read acceptance and speed-up as belonging to this load only.",
        )
    if facts.load.random_prompts:
        yield facts.say(
            "random_prompts_with_acceptance",
            "warning",
            "ACCEPTANCE ON RANDOM TEXT MEANS NOTHING: no drafter foresees it as it foresees real text.",
            f"dataset: random{of_workload(*facts.load.random)}",
            "Use `builtin`, `jsonl` or a published set wherever acceptance or speed-up matter.",
        )
    if facts.engine == "sglang":
        yield from _unseen(facts)


def _faked(facts: Facts) -> Iterable[Finding]:
    set_to = [f"{name}={facts.env[name]}" for name in FAKED if facts.env.get(name, "") not in ("", "-1", "0")]
    set_to += [f"--{name} {facts.words.flags[name]}" for name in FAKED_FLAGS if facts.words.has(name)]
    if set_to and not facts.synthetic:
        yield facts.say(
            "faked_acceptance",
            "error",
            "The acceptance length is faked: no result of this launch would be real.",
            ", ".join(set_to),
            "Take it out of the suite's `env` and `args`.",
        )


def _unseen(facts: Facts) -> Iterable[Finding]:
    level = facts.words.flags.get("log-level", "info").lower()
    if level in QUIET:
        yield facts.say(
            "log_level_hides_acceptance",
            "warning",
            f"--log-level {level} drops the decode lines: the log will hold no acceptance and no graph use.",
            f"log level {level}",
            "Leave --log-level at info.",
        )
    interval = facts.words.number("decode-log-interval") or USUAL_INTERVAL
    steps = facts.load.fewest_steps_count
    if steps is not None and steps < interval:
        yield facts.say(
            "decode_interval_too_long",
            "warning",
            f"A decode line is logged every {interval} steps, and the shortest level"
            f"{of_workload(facts.load.shortest)} may have "
            f"only {steps}: it may leave no acceptance in the log.",
            f"interval {interval}, steps about {steps}",
            f"Give --decode-log-interval {max(1, steps // 4)}, or more requests.",
        )


CHECK: Final[Check] = check
