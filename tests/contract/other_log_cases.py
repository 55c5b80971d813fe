"""Checks cases of kind `log` and `startup` for engines other than SGLang."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from specbench.analysis.log_report import LogStudy, study
from specbench.analysis.log_tally import stale_intervals
from specbench.dialects import DecodeSample, LogLine, llamacpp_events, vllm_death
from specbench.dialects.llamacpp_log import LlamaLog
from specbench.dialects.vllm_log import parse_line as parse_vllm

ENGINES: Final = {"vllm": "vllm", "llama.cpp": "llamacpp"}
TOLD: Final = ("engine", "request", "statistics", "decoded", "tool_block")
"""Names of lines that hold figures, so that they are not `ignored`."""


class OtherLogFacts:
    """Everything that a log case may ask about."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.engine = ENGINES[case["engine"]]
        parse: Callable[[str], LogLine] = parse_vllm if self.engine == "vllm" else LlamaLog().parse_line
        self.lines = [(number, parse(line)) for number, line in enumerate(case["lines"], 1)]
        self.samples = [(number, line.sample) for number, line in self.lines if line.sample is not None]
        found = study(case["lines"], self.engine)  # type: ignore[arg-type]
        assert found is not None
        self.study: LogStudy = found
        detected = study(case["lines"])
        assert detected is not None
        assert detected.engine == self.engine

    def numbers(self, *kinds: str) -> list[int]:
        return [number for number, line in self.lines if line.kind in kinds]

    def ignored(self) -> list[int]:
        kinds = ("known", "noise", "ready", "phase", "warning", "prefill", "flush")
        return [number for number, line in self.lines if line.kind in kinds and line.name not in TOLD]


def near(value: object, expected: object) -> None:
    if isinstance(expected, float) and not isinstance(value, list):
        assert value == pytest.approx(expected, abs=1e-9)
    elif isinstance(expected, list):
        assert value == pytest.approx(expected)
    else:
        assert value == expected


def field_of(sample: DecodeSample, name: str) -> Any:
    return getattr(sample, name) if name in DecodeSample.__struct_fields__ else sample.extra.get(name)


def check_samples(facts: OtherLogFacts, expected: list[dict[str, Any]]) -> None:
    assert [number for number, _ in facts.samples] == [one["line"] for one in expected]
    for (_, sample), wanted in zip(facts.samples, expected, strict=True):
        for name, value in wanted.items():
            if name == "accept_length" and value is not None:
                assert sample.accept_length == pytest.approx(value, abs=5e-5)
            elif name != "line":
                near(field_of(sample, name), value)


def check_values(facts: OtherLogFacts, name: str, expected: list[dict[str, Any]]) -> None:
    found = [(number, line) for number, line in facts.lines if line.name == name and line.kind == "known"]
    assert [number for number, _ in found] == [one["line"] for one in expected]
    for (_, line), wanted in zip(found, expected, strict=True):
        for key, value in wanted.items():
            assert key == "line" or (key, line.value.get(key)) == (key, value)


def check_pooled(facts: OtherLogFacts, expected: dict[str, Any] | None) -> None:
    pooled = facts.study.pooled_accept_length
    if expected is None:
        assert pooled is None
        return
    assert pooled is not None
    assert pooled.value == pytest.approx(expected["value"], abs=expected["tolerance"])
    for name, field in (("accepted", "accepted_tokens"), ("drafted", "drafted_tokens"), ("weights", "weights")):
        assert name not in expected or getattr(pooled, field) == expected[name]
    assert not expected.get("estimate") or pooled.estimate


def check_totals(facts: OtherLogFacts, expected: dict[str, Any]) -> None:
    accepted, drafted = (sum(int(sample.extra[name]) for _, sample in facts.samples) for name in ("accepted", "drafted"))
    pooled = facts.study.pooled_accept_length
    assert pooled is not None
    assert (
        (pooled.accepted_tokens, pooled.drafted_tokens) == (accepted, drafted) == (expected["accepted"], expected["drafted"])
    )
    assert accepted / drafted == pytest.approx(expected["accept_rate"], abs=5e-5)


def check_interval(facts: OtherLogFacts, expected: dict[str, Any]) -> None:
    by_line = dict(facts.samples)
    first, last = (by_line[number].extra for number in expected["lines"])
    steps = (int(last["drafted"]) - int(first["drafted"])) / int(last["k"])
    emitted = int(last["emitted"]) - int(first["emitted"])
    assert (steps, emitted) == (expected["steps"], expected["emitted"])
    assert emitted / steps == pytest.approx(expected["accept_length"], abs=5e-4)


def check_stale(facts: OtherLogFacts, expected: list[int]) -> None:
    intervals = [
        (number, float(one.extra["drafted"]) / float(one.extra["drafted_tps"]))
        for number, one in facts.samples
        if one.extra.get("drafted_tps")
    ]
    assert stale_intervals(intervals) == expected
    assert facts.study.stale_count == len(expected)


def same(value: object, expected: object) -> None:
    assert value == expected


def differs(facts: OtherLogFacts, wrong: float) -> None:
    pooled = facts.study.pooled_accept_length
    assert pooled is None or pooled.value != pytest.approx(wrong, abs=0.01)


CHECKS: Final[dict[str, Callable[[OtherLogFacts, Any], None]]] = {
    "samples": check_samples,
    "engine_samples": lambda facts, value: check_values(facts, "engine", value),
    "cumulative_statistics": lambda facts, value: check_values(facts, "statistics", value),
    "accept_rate_convention": lambda facts, value: same(facts.study.accept_rate_convention, value),
    "num_speculative_tokens": lambda facts, value: same(facts.study.k, value),
    "ignored_lines": lambda facts, value: same(facts.ignored(), value),
    "unrecognised_lines": lambda facts, value: same(facts.numbers("unrecognised"), value),
    "partial_lines": lambda facts, value: same(facts.numbers("partial"), value),
    "fatal_lines": lambda facts, value: same(facts.numbers("fatal"), value),
    "stale_throughput_lines": check_stale,
    "pooled_accept_length": check_pooled,
    "totals": check_totals,
    "interval_between": check_interval,
    "last_useful_position": lambda facts, value: same(facts.study.last_useful_position, value),
    "wrong_accept_length": differs,
    "wrong_totals_if_statistics_summed": lambda facts, value: same(
        facts.study.pooled_accept_length is not None and facts.study.pooled_accept_length.drafted_tokens != value["drafted"],
        True,
    ),
    "verdicts": lambda facts, names: same(set(names) - set(facts.study.verdicts), set()),
    "not_verdicts": lambda facts, names: same(set(names) & set(facts.study.verdicts), set()),
}


def check_log(case: dict[str, Any]) -> None:
    unknown = set(case["expect"]) - set(CHECKS)
    assert not unknown, f"no check for {sorted(unknown)}"
    facts = OtherLogFacts(case)
    for name, expected in case["expect"].items():
        CHECKS[name](facts, expected)


def check_llama_startup(case: dict[str, Any]) -> None:
    expected = case["expect"]
    known = {"started", "healthy", "cause", "decisive_line", "values", "advice_mentions"}
    assert set(expected) <= known, f"no check for {sorted(set(expected) - known)}"
    found = study(case["lines"], "llamacpp")
    assert found is not None
    cause = llamacpp_events.diagnose(case["lines"], case.get("exit_code"))
    assert found.started == expected.get("started", found.started)
    assert (cause.code, cause.decisive_line) == (expected["cause"], expected["decisive_line"])
    assert found.cause is None or found.cause.code == cause.code
    for name, value in expected.get("values", {}).items():
        assert (name, cause.values.get(name)) == (name, value)
    for word in expected.get("advice_mentions", ()):
        assert word in cause.advice


def check_vllm_startup(case: dict[str, Any]) -> None:
    expected = case["expect"]
    known = {"started", "healthy", "cause", "decisive_line", "values", "advice_mentions"}
    assert set(expected) <= known, f"no check for {sorted(set(expected) - known)}"
    watch = vllm_death.watch(case["lines"])
    cause = watch.cause(case.get("exit_code"))
    assert watch.ready == expected.get("started", watch.ready)
    assert (watch.ready and cause.code == "unknown") == expected.get("healthy", watch.ready and cause.code == "unknown")
    assert (cause.code, cause.decisive_line) == (expected["cause"], expected["decisive_line"])
    for name, value in expected.get("values", {}).items():
        assert (name, cause.values.get(name)) == (name, value)
    for word in expected.get("advice_mentions", ()):
        assert word in cause.advice
