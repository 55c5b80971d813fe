"""How the simulated server is told to misbehave."""

from pathlib import Path

import pytest

from specbench.embedded import simulated
from specbench.embedded.faults import Faults, without_faults
from specbench.execution.bench import Bench
from specbench.plan import Slot, make_plan
from specbench.suite import load_suite
from specbench.suite.faults import FAULTS, numbers_of
from tests.unit.suite.test_faults import KNOWN, appended

BASELINE = ("--model-path", "m")


def test_the_flag_is_taken_out_of_the_command_line() -> None:
    argv = ["--model-path", "m", "--fault", "reset:3", "--port", "1", "--fault=never_stops"]
    assert without_faults(argv) == (["--model-path", "m", "--port", "1"], ("reset:3", "never_stops"))


def test_numbers() -> None:
    assert numbers_of(["crash_under_load", "http_500:3", "slow_start:1.5", "never_stops"]) == {
        "crash_under_load": 5.0,
        "http_500": 3.0,
        "slow_start": 1.5,
        "never_stops": 0.0,
    }
    assert Faults(tuple(FAULTS)).numbers.keys() == FAULTS.keys()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("crash", "--fault: there is no fault 'crash'; there are: crash_loading, "),
        ("", "--fault: there is no fault ''"),
        ("never_stops:2", "--fault: the fault never_stops takes no number"),
        ("http_500:x", "--fault: the fault 'http_500:x' must end with a number, as in http_500:1"),
        ("reset:0", "--fault: the number of the fault reset must be at least 1"),
    ],
)
def test_a_wrong_order_is_one_sentence(word: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulated.main([*BASELINE, "--fault", word]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_suite_orders_faults_by_variant(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nmodel: m\nengine: sglang\nworkloads: [{name: chat}]\nvariants: [{name: a}, {name: b}]\n"
        "rehearsal: {faults: {b: [never_stops, 'reset:2']}}\n"
    )
    suite = load_suite(path, {}, KNOWN)
    rehearsed = Bench(plan=make_plan(suite), on_event=print, rehearsal="a test")
    words = [rehearsed.command(variant, Slot()).argv for variant in suite.variants]
    assert "--fault" not in words[0]
    assert words[1][-4:] == ("--fault", "never_stops", "--fault", "reset:2")
    real = Bench(plan=make_plan(suite), on_event=print)
    assert "--fault" not in real.command(suite.variants[1], Slot()).argv


def test_a_fault_or_variant_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    (unknown,) = appended(path, "rehearsal: {faults: {plain: [crash]}}\n")
    assert unknown.startswith(
        "1: entry 1 of 'plain': 'crash' is no fault of the simulated server; there are: crash_loading, "
    )
    assert appended(path, "rehearsal: {faults: {plian: [reset]}}\n") == ["1: 'plian' is no variant; did you mean 'plain'?"]
