"""Two stored results to a verdict: what changed, what passes, what is refused, and that every reason is named."""

import math
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from specbench.analysis import Finding, checks
from specbench.analysis.comparing import Comparison, Options
from specbench.analysis.comparing.compare import compare_runs, compare_within
from specbench.errors import SpecbenchError
from specbench.streams import open_result
from specbench.suite import Model, Speculation, Workload
from tests.unit.analysis.comparing.bed import ALIKE, ASKED, write_result
from tests.unit.analysis.runs import SPECULATION, suite, variant

LATER = "2026-11-29T02:00:00Z"
Paces = dict[str, tuple[float, ...]]
SAME: Paces = {"baseline": ALIKE, "head": ALIKE}


def slower(by: float, noise: float = 0.001) -> tuple[float, ...]:
    return tuple(pace * by * (1 + noise * sign) for pace, sign in zip(ALIKE, (1, -1, 0.5, -0.5, 0), strict=True))


def compared(tmp_path: Path, b: Paces = SAME, options: Options | None = None, **fields: Any) -> Comparison:
    one = write_result(tmp_path / "a", SAME)
    other = write_result(tmp_path / "b", b, **{"started_utc": LATER, **fields})
    return compare_runs(open_result(one), open_result(other), options or Options())


def codes(comparison: Comparison) -> set[str]:
    return {one.code for variant in comparison.variants for one in variant.refusals}


def answers(comparison: Comparison, name: str) -> dict[str, Any]:
    (found,) = [one for one in comparison.variants if one.name == name]
    return {one.change.metric: one for one in found.answers}


def test_equals_pass(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(1.0)})
    assert (found.verdict, found.exit_code) == ("pass", 0)
    assert not any(one.changed for variant in found.variants for one in variant.answers)
    assert found.family_count == 7  # three metrics of the baseline, which has no acceptance, and four of the head


def test_a_slowdown_fails_in_the_right_metrics_of_the_right_variant(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(1.05)})
    assert (found.verdict, found.exit_code) == ("fail", 1)
    assert [one.verdict for one in found.variants] == ["pass", "fail"]
    head = answers(found, "head")
    assert {name: one.gate for name, one in head.items()} == {
        "output_tps": "FAIL",
        "accept_length": "PASS",
        "ttft_p50_s": "FAIL",
        "tpot_p50_s": "FAIL",
    }
    assert head["output_tps"].direction == "worse"
    assert head["output_tps"].change.change_ratio == pytest.approx(1 / 1.05 - 1, abs=1e-3)
    assert head["ttft_p50_s"].change.change_ratio == pytest.approx(0.05, abs=1e-3)


def test_a_gain_is_a_change_and_passes(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(0.95)})
    assert found.verdict == "pass"
    assert answers(found, "head")["tpot_p50_s"].direction == "better"


def test_noise_is_inconclusive_and_says_how_many_launches_decide(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(1.0, 0.02)})
    assert (found.verdict, found.exit_code) == ("inconclusive", 3)
    speed = answers(found, "head")["output_tps"]
    assert speed.gate == "INCONCLUSIVE"
    assert speed.launches_needed_count > speed.change.pair_count
    assert speed.detectable_ratio > 0.02


def test_less_acceptance_fails_between_equal_drafters_only(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(1.0)}, accepted={"head": 10})
    assert answers(found, "head")["accept_length"].gate == "FAIL"
    asked = replace(
        ASKED, variants=(ASKED.variants[0], variant("head", speculation=Speculation(drafter="head", draft_tokens=6)))
    )
    other = write_result(tmp_path / "c", {"head": slower(1.0)}, asked, started_utc=LATER, accepted={"head": 10})
    options = Options(variants=("head",), factors=("speculation",))
    found = compare_runs(open_result(tmp_path / "a"), open_result(other), options)
    assert found.verdict == "pass"
    length = answers(found, "head")["accept_length"]
    assert (length.gate, length.changed) == (None, True)


def test_prompts_tell_acceptance_far_more_finely(tmp_path: Path) -> None:
    asked = suite([variant("head", speculation=SPECULATION)], [Workload(name=name) for name in ("chat", "code", "math")])
    one = write_result(tmp_path / "a", {"head": ALIKE}, asked)
    other = write_result(tmp_path / "b", {"head": slower(1.0)}, asked, started_utc=LATER, accepted={"head": 13})
    diagnostic = compare_runs(open_result(one), open_result(other), Options()).variants[0].prompts
    assert diagnostic is not None
    assert diagnostic.prompt_count == 12
    assert diagnostic.change_ratio == pytest.approx((1 + 14.5 / 11) / (1 + 13.5 / 11) - 1)
    assert 0 < diagnostic.low_ratio < diagnostic.change_ratio < diagnostic.high_ratio


def test_two_variants_of_one_run(tmp_path: Path) -> None:
    one = open_result(write_result(tmp_path / "a", {"baseline": ALIKE, "head": slower(0.8)}))
    found = compare_within(one, "baseline", "head", Options())
    assert (found.verdict, found.within) == ("pass", True)
    assert {one.key for one in found.variants[0].under_test} == {"speculation", "drafter"}
    assert found.variants[0].notes == ("accept_length is not tested: side A does not have it.",)
    assert compare_within(one, "head", "baseline", Options()).verdict == "fail"


def test_one_level_is_asked_for(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(1.0)}, Options(level=("chat", 2)))
    change = answers(found, "head")["output_tps"].change
    assert (change.workload, change.concurrency, found.level) == ("chat", 2, "chat at 2")
    assert {one.concurrency for one in found.variants[0].levels} == {2}


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"failing": {("head", 2): "request"}}, "requests_failed", "launch 2 of"),
        ({"failing": {("head", 3): "record"}}, "impossible_records", "1 of 8 requests hold times or counts that can't be"),
        ({"failing": {("head", 1): "launch"}}, "launch_failed", "CUDA error"),
        ({"failing": {("head", 4): "level"}}, "level_missing", "chat at 2 was not recorded whole"),
        ({"simulated": True}, "simulated_against_real", "B is SIMULATED"),
        ({"environment": {"host": "other"}}, "differs", "host differs: A has box, B has other (--factor host"),
        ({"records": {"engine_version": "0.5.24"}}, "differs", "engine_version differs: A has 0.5.23, B has 0.5.24"),
        ({"records": {"resolved": {"attention": "fa3"}}}, "differs", "resolved differs"),
        ({"asked": replace(ASKED, model=Model(path="org/other"))}, "differs", "model differs"),
    ],
)
def test_refused_with_the_reason(tmp_path: Path, fields: dict[str, Any], code: str, words: str) -> None:
    found = compared(tmp_path, **fields)
    assert (found.verdict, found.exit_code) == ("refused", 2)
    assert codes(found) == {code}
    messages = [one.message for variant in found.variants for one in variant.refusals]
    assert any(words in message for message in messages), messages
    assert found.variants[1].answers == ()


def test_every_reason_is_named(tmp_path: Path) -> None:
    workload = Workload(name="chat", concurrency=(1, 2), temperature=0.7, max_output_tokens=128)
    asked = replace(ASKED, workloads=(workload,), seed=1)
    found = compared(
        tmp_path,
        {"head": ALIKE[:2]},
        asked=asked,
        options=Options(variants=("head",)),
        environment={"cpu_model": "another CPU"},
    )
    text = "\n".join(one.message for one in found.variants[0].refusals)
    for words in (
        "seed",
        "workload.chat.temperature",
        "workload.chat.max_output_tokens",
        "cpu_model",
        "2 pairs of launches",
    ):
        assert words in text


def test_what_one_side_did_not_record_is_told_and_not_refused(tmp_path: Path) -> None:
    seen = {"environment": {"packages": {"sha256": "aa"}, "gpus": [{"index": 0, "uuid": "GPU-1", "temperature_c": 60}]}}
    found = compared(tmp_path, records=seen, environment={"gpu_driver": "580.1"})
    assert found.verdict == "pass"
    assert "Recorded on one side only, so not compared: gpu_driver, packages, gpu_settings." in found.variants[0].notes


def test_packages_and_gpus_of_the_launches_are_compared(tmp_path: Path) -> None:
    def facts(version: str, power: float) -> dict[str, Any]:
        gpus = [{"index": 0, "uuid": "GPU-1", "power_limit_w": power, "temperature_c": power}]
        return {"environment": {"packages": {"versions": {"torch": version, "vllm": "1"}}, "gpus": gpus}}

    one = write_result(tmp_path / "a", SAME, records=facts("2.8", 700.0))
    other = write_result(tmp_path / "b", SAME, started_utc=LATER, records=facts("2.9", 600.0))
    messages = [one.message for one in compare_runs(open_result(one), open_result(other), Options()).variants[0].refusals]
    assert [text.partition(" ")[0] for text in messages] == ["packages", "gpu_settings"]
    assert "torch 2.8" in messages[0]


def test_a_declared_factor_may_differ(tmp_path: Path) -> None:
    options = Options(factors=("engine_version", "resolved"))
    found = compared(tmp_path, records={"engine_version": "0.5.24", "resolved": {"attention": "fa3"}}, options=options)
    assert found.verdict == "pass"
    assert {one.key for one in found.variants[0].under_test} == {"engine_version", "resolved"}


def test_simulated_is_never_a_factor(tmp_path: Path) -> None:
    options = Options(factors=("simulation",))
    one = write_result(tmp_path / "a", SAME, simulated=True)
    other = write_result(tmp_path / "b", SAME, started_utc=LATER)
    assert "simulated_against_real" in codes(compare_runs(open_result(one), open_result(other), options))


def test_a_rehearsal_of_more_launches_is_the_same_rehearsal(tmp_path: Path) -> None:
    said = "3 servers side by side and a shrunk load: {} a variant, 4 requests a level"
    for name, launches, words in (("a", ALIKE, "1 launch"), ("b", slower(1.0), "6 launches")):
        write_result(tmp_path / name, {"head": launches}, started_utc=words, simulated=True, rehearsal=said.format(words))
    options = Options(variants=("head",))
    found = compare_runs(open_result(tmp_path / "a"), open_result(tmp_path / "b"), options)
    assert (found.verdict, found.simulated) == ("pass", True)
    write_result(tmp_path / "c", {"head": slower(1.0)}, simulated=True, rehearsal="the whole load")
    found = compare_runs(open_result(tmp_path / "a"), open_result(tmp_path / "c"), options)
    assert codes(found) == {"differs"}


def test_what_befell_a_rehearsal_is_not_what_was_asked_of_it(tmp_path: Path) -> None:
    told: dict[str, Any] = {"simulated": True, "rehearsal": "a shrunk load"}
    a = write_result(tmp_path / "a", {"baseline": ALIKE}, **told)
    faulty = replace(ASKED, rehearsal=replace(ASKED.rehearsal, faults={"baseline": ("slow_steps:5",)}))
    b = write_result(tmp_path / "b", {"baseline": ALIKE}, faulty, started_utc=LATER, **told)
    other = replace(ASKED, rehearsal=replace(ASKED.rehearsal, base_step_s=0.02))
    c = write_result(tmp_path / "c", {"baseline": ALIKE}, other, started_utc=LATER, **told)
    assert compare_runs(open_result(a), open_result(b), Options()).verdict == "pass"
    refused = compare_runs(open_result(a), open_result(c), Options()).variants[0].refusals
    assert [one.code for one in refused] == ["differs"]


def test_a_copy_of_a_run_shares_its_launches(tmp_path: Path) -> None:
    one = write_result(tmp_path / "a", SAME)
    shutil.copytree(one, tmp_path / "copy")
    found = compare_runs(open_result(one), open_result(tmp_path / "copy"), Options())
    assert codes(found) == {"launches_shared"}


def test_a_failed_variant_does_not_hide_that_another_is_worse(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.05), "head": ALIKE}, failing={("head", 0): "launch"})
    assert [one.verdict for one in found.variants] == ["fail", "refused"]
    assert found.exit_code == 1


def test_throttled_gpus_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(evidence: checks.Evidence) -> Iterable[Finding]:
        if evidence.stored.trials[0].observations[0].value["throttled"]:
            (name,) = evidence.arms
            yield Finding(
                code="gpu_throttled", severity="warning", variant=name, message="held back", evidence="hot 9 of 10"
            )

    names, get = checks.names(), checks.get
    monkeypatch.setattr(checks, "names", lambda: (*names, "gpu_throttled"))
    monkeypatch.setattr(checks, "get", lambda name: throttled if name == "gpu_throttled" else get(name))
    one, other = write_result(tmp_path / "a", SAME), write_result(tmp_path / "b", SAME, started_utc=LATER)
    for launch_index, is_hot in ((0, "false"), (3, "true")):
        line = f'{{"at_s":1.0,"source":"telemetry","name":"gpu","value":{{"throttled":{is_hot}}}}}\n'
        place = other / f"head.launch{launch_index}"
        (place / "observations.jsonl").write_text(line)
        counted = (place / "manifest.json").read_text().replace('"observation_count": 0', '"observation_count": 1')
        (place / "manifest.json").write_text(counted)
    found = compare_runs(open_result(one), open_result(other), Options())
    assert [one.message.partition(":")[2] for one in found.variants[1].refusals] == [" GPUs were held back: hot 9 of 10"]
    assert "launch 3" in found.variants[1].refusals[0].message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(metrics=("tps",)), "no metric 'tps'"),
        (Options(metrics=("output_tps", "accept_length", "ttft_p50_s", "tpot_p50_s", "ttft_p99_s")), "5 primary metrics"),
        (Options(factors=("gpu",)), "--factor gpu: there is no such key"),
        (Options(variants=("tail",)), "'tail' is not in both results"),
        (Options(level=("chat", 8)), "no level chat@8; there are: chat@1, chat@2"),
    ],
)
def test_wrong_usage_is_one_sentence(tmp_path: Path, options: Options, words: str) -> None:
    with pytest.raises(SpecbenchError, match=words):
        compared(tmp_path, options=options)


def test_launches_without_a_partner_are_left_out(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0)[:4], "head": slower(1.0)})
    assert answers(found, "baseline")["output_tps"].change.pair_count == 4
    assert "1 launch has no partner on the other side, left out." in found.variants[0].notes


def test_the_mean_is_that_of_logs_over_levels(tmp_path: Path) -> None:
    found = compared(tmp_path, {"baseline": slower(1.0), "head": slower(1.05, 0)})
    change = answers(found, "head")["tpot_p50_s"].change
    levels = [one.change_ratio for one in found.variants[1].levels if one.metric == "tpot_p50_s"]
    assert len(levels) == 2
    assert math.log1p(change.change_ratio) == pytest.approx(sum(map(math.log1p, levels)) / 2)
