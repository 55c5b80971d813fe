"""Reads every case in a folder: `SPECBENCH_CASES=DIR pytest tests/contract -k cases`; without it, our own.

A case is `<id>.expect.json` beside its input. A kind or an engine that is not built yet is skipped by name; a key in
`expect` that no check knows fails, so that nothing is passed over in silence.
"""

import copy
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from specbench.analysis.acceptance import LogReport, read_log
from specbench.analysis.plain import judge_plain
from specbench.dialects import DecodeSample, LogLine
from specbench.dialects.sglang_args import LaunchFacts, launch_facts
from specbench.dialects.sglang_death import diagnose, started
from specbench.dialects.sglang_log import parse_line
from specbench.dialects.sglang_version import rate_meaning
from tests.contract.import_cases import check_import
from tests.contract.other_log_cases import check_llama_startup, check_log, check_vllm_startup
from tests.contract.preflight_cases import check_pairing, check_preflight, pairing_name, pairings
from tests.contract.verdict_cases import check_verdict

OWN: Final = Path(__file__).parent.parent / "data" / "cases"
FOLDER: Final = Path(os.environ.get("SPECBENCH_CASES") or OWN)
PATHS: Final = sorted(FOLDER.glob("*.expect.json"))

Case = dict[str, Any]


def load(path: Path) -> Case:
    case: Case = json.loads(path.read_text(encoding="utf-8"))
    source = path.parent / case["input"]
    case["lines"] = source.read_bytes().decode().split("\n") if source.is_file() else []
    if case["lines"] and case["lines"][-1] == "":
        case["lines"].pop()
    return case


class LogFacts:
    """Everything that a log case may ask about."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.launch: LaunchFacts = launch_facts(case.get("launch", ""), case.get("version"))
        meaning = partial(
            rate_meaning, version=case.get("version"), draft_tokens=self.launch.draft_tokens, steps=self.launch.steps
        )
        self.report: LogReport = read_log(case["lines"], parse_line, rate_meaning=meaning)
        self.samples = [
            (number, one.sample)
            for number, line in enumerate(case["lines"], start=1)
            for one in flat(parse_line(line))
            if one.sample is not None
        ]

    def verdicts(self) -> set[str]:
        names = ("running_requests", "accept_length", "accept_rate", "cuda_graph", "gen_throughput_tps")
        samples = [{name: getattr(sample, name) for name in names} for _, sample in self.samples]
        numbers = {
            "samples": samples,
            "num_draft_tokens": self.launch.draft_tokens,
            "num_steps": self.launch.steps,
            "launch": self.case.get("launch"),
        }
        return set(judge_plain(numbers, self.case.get("version")).verdicts)


def flat(line: LogLine) -> tuple[LogLine, ...]:
    return (line, *line.also)


def check_samples(facts: LogFacts, expected: list[dict[str, Any]]) -> None:
    assert [number for number, _ in facts.samples] == [sample["line"] for sample in expected]
    for (number, sample), wanted in zip(facts.samples, expected, strict=True):
        for name, value in wanted.items():
            if name != "line":
                assert (name, field_of(sample, name)) == (name, value), f"line {number}"


def field_of(sample: DecodeSample, name: str) -> Any:
    if name in DecodeSample.__struct_fields__:
        return getattr(sample, name)
    assert name in sample.extra, f"a sample has no '{name}', only {sorted(sample.extra)}"
    return sample.extra[name]


def check_pooled(facts: LogFacts, expected: dict[str, Any] | None) -> None:
    pooled = facts.report.pooled_accept_length
    if expected is None:
        assert pooled is None
        return
    assert pooled is not None
    known = {"value", "tolerance", "lines", "weights", "estimate"}
    assert set(expected) <= known, f"not checked: {set(expected) - known}"
    assert pooled.value == pytest.approx(expected["value"], abs=expected["tolerance"])
    assert pooled.weights == expected["weights"]
    assert pooled.estimate == expected.get("estimate", False)
    if "lines" in expected:
        assert list(pooled.lines) == expected["lines"]


def check_ratio(value: float | None, expected: float) -> None:
    """As printed: equal to its last digit."""
    digits = len(repr(expected).partition(".")[2])
    assert value is not None
    assert value == pytest.approx(expected, abs=0.5 * 10**-digits + 1e-9)


def lines_are(group: Any, facts: LogFacts, expected: list[int]) -> None:
    assert list(facts.report.lines[group]) == expected


def same(read: Callable[[LogFacts], Any], facts: LogFacts, expected: Any) -> None:
    assert read(facts) == expected


LOG_CHECKS: Final[dict[str, Callable[[LogFacts, Any], None]]] = {
    "samples": check_samples,
    "pooled_accept_length": check_pooled,
    "accept_rate_convention": partial(same, lambda facts: facts.report.accept_rate_convention),
    "num_draft_tokens": partial(same, lambda facts: facts.report.draft_tokens),
    "ignored_lines": partial(lines_are, "ignored"),
    "unrecognised_lines": partial(lines_are, "unrecognised"),
    "partial_lines": partial(lines_are, "partial"),
    "duplicate_lines": partial(lines_are, "duplicate"),
    "fatal_lines": partial(lines_are, "fatal"),
    "stale_throughput_lines": partial(lines_are, "stale"),
    "gen_throughput_median_tps": lambda facts, value: check_ratio(facts.report.median_tps, value),
    "server_throughput_tps_latest_per_rank_sum": lambda facts, value: check_ratio(facts.report.server_tps, value),
    "decode_graph_share": lambda facts, value: check_ratio(facts.report.decode_graph_ratio, value),
    "prefix_cache_hit_fraction": lambda facts, value: check_ratio(facts.report.prefix_cache_hit_ratio, value),
    "dp_ranks_seen": partial(same, lambda facts: list(facts.report.dp_ranks)),
    "dp_size": partial(same, lambda facts: facts.launch.dp_rank_count),
    "speculation_active": partial(same, lambda facts: facts.report.speculation_active),
    "warnings": partial(same, lambda facts: list(facts.report.warnings)),
    "verdicts": lambda facts, names: same(lambda one: set(names) - one.verdicts(), facts, set()),
    "not_verdicts": lambda facts, names: same(lambda one: set(names) & one.verdicts(), facts, set()),
}


def check_sglang_log(case: Case) -> None:
    unknown = set(case["expect"]) - set(LOG_CHECKS)
    assert not unknown, f"no check for {sorted(unknown)}"
    facts = LogFacts(case)
    for name, expected in case["expect"].items():
        LOG_CHECKS[name](facts, expected)


def check_sglang_startup(case: Case) -> None:
    expected = case["expect"]
    known = {"started", "healthy", "cause", "decisive_line", "values", "advice_mentions"}
    assert set(expected) <= known, f"no check for {sorted(set(expected) - known)}"
    cause = diagnose(case["lines"], case.get("exit_code"), case.get("launch", "").split(), case.get("version"))
    ready = started(case["lines"])
    if "started" in expected:
        assert ready == expected["started"]
    if "healthy" in expected:
        assert (ready and cause.code == "unknown") == expected["healthy"]
    assert cause.code == expected["cause"]
    assert cause.decisive_line == expected["decisive_line"]
    for name, value in expected.get("values", {}).items():
        assert (name, cause.values.get(name)) == (name, value)
    for word in expected.get("advice_mentions", ()):
        assert word in cause.advice


CHECKS: Final[dict[str, dict[str, Callable[[Case], None]]]] = {
    "log": {"sglang": check_sglang_log, "vllm": check_log, "llama.cpp": check_log},
    "startup": {"sglang": check_sglang_startup, "vllm": check_vllm_startup, "llama.cpp": check_llama_startup},
    "preflight": dict.fromkeys(("sglang", "vllm", "llamacpp"), check_preflight),
    "verdict": dict.fromkeys(("sglang", "vllm", "llama.cpp"), check_verdict),
    "import": dict.fromkeys(("sglang bench_serving", "vllm bench serve"), check_import),
}
"""Kind, then engine. A new kind or engine is one entry."""


def test_cases_are_there() -> None:
    assert PATHS, f"no *.expect.json in {FOLDER}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name.removesuffix(".expect.json"))
def test_cases(path: Path) -> None:
    case = load(path)
    kind, engine = case["kind"], case["engine"]
    if kind not in CHECKS:
        pytest.skip(f"kind {kind}: not built yet")
    if engine not in CHECKS[kind]:
        pytest.skip(f"kind {kind} of engine {engine}: not built yet")
    assert case["lines"], f"{case['input']} is missing or empty"
    CHECKS[kind][engine](case)


PAIRINGS: Final = FOLDER / "checkpoints" / "expect.json"


@pytest.mark.parametrize("pairing", pairings(PAIRINGS), ids=pairing_name)
def test_checkpoint_pairings(pairing: dict[str, Any]) -> None:
    check_pairing(PAIRINGS.parent, pairing)


WRONG: Final[dict[str, Any]] = {"cause": "unknown", "decisive_line": 1, "values": {"bs": 0}, "advice_mentions": ["--none"]}


@pytest.mark.parametrize("name", ["sgl-log-01", "sgl-log-02", "sgl-log-06", "startup-01", "sgl-own-dead-drafter"])
def test_cases_fail_on_a_wrong_expectation(name: str) -> None:
    case = load(OWN / f"{name}.expect.json")
    for key, value in case["expect"].items():
        wrong = copy.deepcopy(case)
        wrong["expect"][key] = WRONG.get(key, spoiled(value))
        with pytest.raises(AssertionError):
            CHECKS[case["kind"]][case["engine"]](wrong)


def spoiled(value: Any) -> Any:
    """Something near, but not equal."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case [dict() as first, *rest]:
            return [{**first, "accept_length": 9.99}, *rest]
        case list():
            return (
                [*value, "spoiled" if value and isinstance(value[0], str) else 999]
                if value != ["healthy"]
                else ["dead_drafter"]
            )
        case {"value": number}:
            return {**value, "value": number + 1}
        case _:
            return "spoiled"


def test_an_unknown_key_fails() -> None:
    case = load(OWN / "sgl-log-01.expect.json")
    case["expect"]["nobody_checks_this"] = 1
    with pytest.raises(AssertionError, match="nobody_checks_this"):
        check_sglang_log(case)
