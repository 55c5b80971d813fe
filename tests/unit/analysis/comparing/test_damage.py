"""Results that were damaged or made up since: every one a sentence and an exit code, none a traceback, none a PASS."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbench.cli.main import main
from tests.unit.analysis.comparing.bed import ALIKE, write_result

HEAD = "head.launch1"
Damage = Callable[[Path], Any]


def requests(**fields: Any) -> Damage:
    """The same fields in every request of one launch; `…` takes one away."""

    def damage(run: Path) -> None:
        path = run / HEAD / "requests.jsonl"
        lines = [{**json.loads(line), **fields} for line in path.read_text().splitlines()]
        kept = [{name: one for name, one in line.items() if one is not ...} for line in lines]
        path.write_text("".join(json.dumps(one) + "\n" for one in kept))

    return damage


def edited(name: str, change: Callable[[Any], Any]) -> Damage:
    def damage(run: Path) -> None:
        document = json.loads((run / name).read_text())
        change(document)
        (run / name).write_text(json.dumps(document))

    return damage


def manifest(**fields: Any) -> Damage:
    return edited(f"{HEAD}/manifest.json", lambda document: document.update(fields))


def lines_twice(run: Path) -> None:
    path = run / HEAD / "requests.jsonl"
    path.write_bytes(path.read_bytes() * 2)


def one_chunk(run: Path) -> None:
    """As from a server that stopped streaming."""
    path = run / HEAD / "requests.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.update(chunk_s=line["chunk_s"][:1], chunk_tokens=[sum(line["chunk_tokens"])])
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def launch_of(name: str, file: str = "") -> Damage:
    """Another launch's folder, or one file of it, in this one's place."""

    def damage(run: Path) -> None:
        if file:
            shutil.copy(run / name / file, run / HEAD / file)
        else:
            shutil.rmtree(run / HEAD)
            shutil.copytree(run / name, run / HEAD)

    return damage


CASES: dict[str, tuple[Damage, str]] = {
    "a launch is gone": (lambda run: shutil.rmtree(run / HEAD), "lacks head.launch1 of its plan: specbench run --resume"),
    "a manifest is gone": (lambda run: (run / HEAD / "manifest.json").unlink(), "lacks head.launch1 of its plan"),
    "requests are gone": (lambda run: (run / HEAD / "requests.jsonl").unlink(), "was not recorded whole"),
    "observations are gone": (manifest(observation_count=3), "3 lines of its observations.jsonl were lost"),
    "requests are there twice": (lines_twice, "not all are of this launch"),
    "requests of another launch": (launch_of("head.launch2", "requests.jsonl"), "hold the same requests"),
    "manifest of another launch": (launch_of("head.launch2", "manifest.json"), "holds another trial than run.json says"),
    "a launch of another variant": (launch_of("baseline.launch1"), "holds another trial than run.json says"),
    "a launch is planned twice": (
        edited("run.json", lambda document: document["trials"].append(document["trials"][-1])),
        "names the launch head.launch4 twice",
    ),
    "one launch was simulated": (manifest(simulated=True), "B is SIMULATED and A was measured"),
    "fewer tokens than none": (requests(output_tokens=-5), "8 of 8 requests hold times or counts that can't be"),
    "more steps than a number holds": (requests(verify_count=2**70), "requests.jsonl:1: can't be read"),
    "negative counts in chunks": (requests(output_tokens=..., chunk_tokens=[-5] * 12), "output_tps can't be -"),
    "done in the far future": (requests(done_s=1e308), "output_tps can't be"),
    "due in the far past": (requests(due_s=-1e308), "hold times or counts that can't be"),
    "all of time": (requests(due_s=-1e308, done_s=1e308), "hold times or counts that can't be"),
    "chunks before the request": (requests(due_s=1e6), "hold times or counts that can't be"),
    "chunks backwards": (requests(chunk_s=[float(12 - n) for n in range(12)]), "hold times or counts that can't be"),
    "no token at all": (requests(output_tokens=0), "output_tps was not measured, or is 0, in a launch of B"),
    "nobody counted tokens": (requests(output_tokens=..., chunk_tokens=[]), "output_tps was not measured"),
    "nobody counted drafts": (requests(verify_count=..., correct_tokens=...), "accept_length was not measured"),
    "no draft was verified": (requests(verify_count=0), "accept_length was not measured"),
    "answers in one chunk": (one_chunk, "tpot_p50_s was not measured"),
    "no chunks": (requests(chunk_s=[], chunk_tokens=[]), "ttft_p50_s was not measured"),
    "the clock was set": (requests(stepped=True), "ttft_p50_s was not measured"),
    "a dataset that is none": (
        edited("run.json", lambda document: document.update(datasets={"chat": 3})),
        "workload.chat.prompts differs: A has aa, B has 3",
    ),
    "nested without end": (lambda run: (run / HEAD / "requests.jsonl").write_text('{"a":' * 99_999 + "\n"), "can't be read"),
    "cut in the middle": (lambda run: (run / "run.json").write_text((run / "run.json").read_text()[:300]), "truncated"),
}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, Path]:
    """Two results that pass."""
    a = write_result(tmp_path / "a", {"baseline": ALIKE, "head": ALIKE})
    other = tuple(pace * (1 + 0.001 * sign) for pace, sign in zip(ALIKE, (1, -1, 0.5, -0.5, 0), strict=True))
    b = write_result(tmp_path / "b", {"baseline": other, "head": other}, started_utc="2026-11-29T02:00:00Z")
    assert main(["compare", str(a), str(b)]) == 0
    return str(a), b


@pytest.mark.parametrize("name", CASES)
def test_damage_is_named_and_never_passes(name: str, sides: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sides
    damage, words = CASES[name]
    damage(b)
    capsys.readouterr()
    for form in ("terminal", "json", "junit", "github", "markdown"):
        code = main(["compare", a, str(b), "--format", form, "--variant", "head"])
        shown = capsys.readouterr()
        assert code == 2, shown.out + shown.err
        if form in ("json", "terminal"):
            assert words in " ".join((shown.out + shown.err).split())
        assert "NaN" not in shown.out
        assert "Infinity" not in shown.out


def test_what_neither_side_measured_is_told_and_not_refused(
    sides: tuple[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = sides
    for run in (Path(a), b):
        requests(verify_count=..., correct_tokens=...)(run)
    capsys.readouterr()
    assert main(["compare", a, str(b), "--variant", "head"]) == 0
    assert "accept_length is not tested: neither side has it" in " ".join(capsys.readouterr().out.split())


def test_huge_changes_have_finite_figures(sides: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sides
    requests(output_tokens=10**11)(b)
    capsys.readouterr()
    assert main(["compare", a, str(b), "--variant", "head", "--format", "json"]) == 3
    (head,) = json.loads(capsys.readouterr().out)["variants"]
    assert head["answers"][0]["change"]["high_ratio"] > 1e6
    assert main(["compare", a, str(b), "--variant", "head"]) == 3
    assert "e+" in capsys.readouterr().out


def test_two_suites_are_told_by_their_names(sides: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sides
    edited("run.json", lambda document: document.update(suite_name="other\x1b[31m"))(b)
    capsys.readouterr()
    main(["compare", a, str(b)])
    shown = capsys.readouterr().out
    assert "Two suites: A is of 'made', B of 'other'." in shown
    assert "\x1b" not in shown


def test_a_moment_that_is_none_stays_out_of_junit(sides: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sides
    edited("run.json", lambda document: document.update(started_utc="<b>\x1b[2Jyesterday"))(b)
    capsys.readouterr()
    assert main(["compare", a, str(b), "--format", "junit"]) == 0
    assert "timestamp" not in capsys.readouterr().out
