"""`specbench nightly`: what becomes of each night, and what the next one is compared with. Its launches are stated."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import xmlschema

from specbench.cli.main import main
from specbench.errors import SpecbenchError
from specbench.nights import Night
from specbench.nights.folder import NightFolder
from tests.unit.cli.night_bed import Nights
from tests.unit.endpoint import SECRET, Endpoint

JUNIT = Path(__file__).parents[2] / "data" / "junit-10.xsd"
FORMS = {"night.txt", "night.md", "night.json", "night.junit.xml", "night.github.txt"}


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    for name in ("GITHUB_STEP_SUMMARY", "SPECBENCH_WEBHOOK"):
        monkeypatch.delenv(name, raising=False)
    return Nights(tmp_path, monkeypatch)


def test_a_loss_turns_it_red_names_the_metric_and_the_next_healthy_night_is_green(
    nights: Nights, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nights.spend() == 0
    assert "FIRST NIGHT" in capsys.readouterr().out
    assert nights.spend() == 0
    assert nights.spend(by=1.05) == 1
    told = capsys.readouterr().out
    assert "head: tok/s −4.8 %" in told
    assert f"page: {Path('results/nightly/small/index.html')}" in told
    assert nights.spend() == 0
    assert nights.statuses == ["first", "pass", "fail", "pass"]
    red, green = nights.history.nights[-2:]
    assert {(one.variant, one.metric) for one in red.worse} == {
        ("head", "output_tps"),
        ("head", "ttft_p50_s"),
        ("head", "tpot_p50_s"),
    }
    assert red.reference.endswith("small-20261102-020000")
    assert green.reference.endswith("small-20261102-020000")
    assert not green.pinned
    assert [one.variant for one in green.figures] == ["baseline", "head"]
    assert all(one.output_tps and one.launch_count == 5 for one in green.figures)
    assert (green.figures[0].accept_length, green.figures[0].is_baseline) == (None, True)


def test_every_form_is_written_and_of_tonight(nights: Nights) -> None:
    nights.spend()
    assert {one.name for one in (nights.place / "latest").iterdir()} == FORMS
    schema = xmlschema.XMLSchema(str(JUNIT))
    schema.validate(nights.latest("night.junit.xml"))
    nights.spend(by=1.05)
    assert {one.name for one in (nights.place / "latest").iterdir()} == FORMS | {"comparison.json"}
    schema.validate(nights.latest("night.junit.xml"))
    whole = json.loads(nights.latest("night.json"))
    assert (whole["exit_code"], whole["night"]["status"], whole["label"]) == (1, "fail", None)
    assert whole["comparison"] == json.loads(nights.latest("comparison.json"))
    assert nights.latest("night.md").startswith("## ❌ FAIL")
    assert nights.fail(trouble=SpecbenchError("no GPU is free\nno port is free")) == 2
    assert {one.name for one in (nights.place / "latest").iterdir()} == FORMS
    schema.validate(nights.latest("night.junit.xml"))
    assert '<error type="failed to run" message="no GPU is free">' in nights.latest("night.junit.xml")
    assert nights.latest("night.github.txt") == "::error title=FAILED TO RUN%3A small::no GPU is free%0Ano port is free\n"


def test_a_night_that_does_not_run_is_a_row(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    assert nights.fail(trouble=SpecbenchError("no GPU is free")) == 2
    assert "FAILED TO RUN\nno GPU is free" in capsys.readouterr().out
    assert nights.spend() == 0
    assert nights.spend(failing={("head", 2): "launch"}) == 2
    assert nights.spend() == 0
    assert nights.statuses == ["failed", "first", "failed", "pass"]
    failed, last = nights.history.nights[2:]
    assert failed.headlines[0] == "head: CUDA error"
    assert last.reference.endswith("small-20261101-020000")
    assert "FAILED TO RUN" in nights.page()


def test_a_first_night_with_a_failed_launch_is_no_reference(nights: Nights) -> None:
    assert nights.spend(failing={("head", 2): "launch"}) == 2
    assert nights.spend() == 0
    assert nights.statuses == ["failed", "first"]


def test_a_broken_suite_is_a_row_where_there_were_nights(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    nights.suite.write_text("name: small\nworkload: x\n")
    assert nights.spend() == 2
    assert not nights.place.exists()
    nights.suite.write_text("name: small\nengine: sglang\nmodel: m\nvariants: [{name: a}]\nworkloads: [{name: chat}]\n")
    nights.spend()
    nights.suite.write_text("name: small\nworkload: x\n")
    assert nights.spend() == 2
    assert nights.statuses == ["first", "failed"]
    assert "unknown key 'workload'" in " ".join(nights.history.nights[-1].headlines)


def test_what_can_not_be_compared_is_refused_until_it_is_pinned(nights: Nights) -> None:
    assert nights.spend() == 0
    assert nights.spend(records={"engine_version": "0.5.24"}) == 2
    assert nights.spend(records={"engine_version": "0.5.24"}) == 2
    assert nights.statuses == ["first", "refused", "refused"]
    assert any("engine_version differs" in one for one in nights.history.nights[-1].headlines)
    pin = nights.place / "small-20261103-020000"
    assert nights.spend("--pin", str(pin), records={"engine_version": "0.5.24"}) == 0
    assert nights.spend(records={"engine_version": "0.5.24"}, by=1.03) == 1
    assert [one.pinned for one in nights.history.nights] == [False, False, False, True, True]
    assert (nights.place / "reference").read_text() == "small-20261103-020000\n"
    assert nights.spend("--unpin", records={"engine_version": "0.5.24"}) == 0
    assert nights.history.nights[-1].reference.endswith("small-20261104-020000")
    assert not (nights.place / "reference").exists()


def test_a_declared_factor_may_differ(nights: Nights) -> None:
    nights.spend()
    assert nights.spend("--factor", "engine_version", records={"engine_version": "0.5.24"}) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pin", "nowhere"], "nowhere: no result of specbench"),
        (["--metric", "speed"], "there is no metric 'speed'"),
        (["--calibration", "nowhere.json"], "nowhere.json: can't be read"),
        (["--factor", "gpuz"], "there is no such key"),
        (["--level", "chat@9"], "there is no level chat@9"),
    ],
)
def test_mistakes_are_rows_with_their_sentence(nights: Nights, words: list[str], said: str) -> None:
    nights.spend()
    assert nights.spend(*words) == 2
    assert nights.statuses[-1] == "failed"
    assert said in " ".join(nights.history.nights[-1].headlines)
    assert nights.spend() == 0


def test_a_metric_that_is_none_is_told_before_anything_is_launched(nights: Nights) -> None:
    nights.spend()
    nights.spend("--metric", "speed")
    assert nights.count == 1


def test_a_night_that_was_killed_is_a_row_of_the_next(nights: Nights) -> None:
    nights.spend()
    folder = NightFolder(nights.place, "small")
    history = folder.history()
    cut = Night(started_utc="2026-11-01T23:00:00Z", status="running")
    folder.write_history(type(history)(suite_name="small", nights=(*history.nights, cut)))
    assert nights.spend() == 0
    assert nights.statuses == ["first", "failed", "pass"]
    assert "killed" in nights.history.nights[1].headlines[0]


def test_two_nights_do_not_overlap(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    nights.spend()
    with NightFolder(nights.place, "small").alone():
        assert nights.spend() == 2
    assert f"another night writes there (process {os.getpid()}" in capsys.readouterr().err
    assert nights.statuses == ["first"]
    assert nights.spend() == 0


def test_the_disk_budget_never_takes_references_or_the_newest(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(4):
        nights.spend()
    first = nights.runs()[0]
    assert nights.spend("--pin", str(nights.place / first)) == 0
    capsys.readouterr()
    assert nights.spend("--keep-gib", "0.000001", by=1.05) == 1
    told = capsys.readouterr().out
    assert "deleted: 3 old runs" in told
    assert "more than the 1e-06 GiB asked for" in told
    assert nights.runs() == (first, "small-20261105-020000", "small-20261106-020000")
    assert len(nights.history.nights) == 6
    assert "small-20261103-020000/report.html" not in nights.page()
    assert "small-20261106-020000/report.html" in nights.page()
    assert (nights.place / "small-20261106-020000" / "report.html").is_file()
    assert nights.spend() == 0


def test_a_reference_whose_run_was_deleted_by_hand_is_passed_over(nights: Nights) -> None:
    nights.spend()
    nights.spend()
    (nights.place / "small-20261102-020000" / "run.json").unlink()
    assert nights.spend() == 0
    assert nights.history.nights[-1].reference.endswith("small-20261101-020000")


@pytest.mark.parametrize(("form", "begin"), [("json", "{"), ("junit", "<?xml"), ("markdown", "## "), ("github", "::")])
def test_other_forms_are_alone_on_standard_output(
    nights: Nights, form: str, begin: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = nights.folder / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for night in range(2):
        nights.spend("--format", form)
        shown = capsys.readouterr()
        assert shown.out.startswith(begin)
        assert "page: " not in shown.out
        assert "page: " in shown.err
        assert (summary.read_text().count("## ") == night + 1) if form == "github" else not summary.exists()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Endpoint()
    yield found
    found.close()


def stored_text(nights: Nights) -> str:
    """All that the nights left on the disk."""
    return "".join(one.read_text(errors="replace") for one in nights.folder.rglob("*") if one.is_file())


def test_a_webhook_is_told_and_its_address_is_nowhere(
    nights: Nights, endpoint: Endpoint, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECBENCH_WEBHOOK", endpoint.url)
    nights.spend()
    assert "SPECBENCH_WEBHOOK" not in os.environ
    nights.spend("--webhook", endpoint.url, "--webhook-trouble")
    nights.spend("--webhook", endpoint.url, "--webhook-trouble", "--webhook-shape", "slack", by=1.05)
    (_, _, first), (_, _, red) = endpoint.bodies
    assert (first["event"], first["status"], first["suite_name"], first["exit_code"]) == (
        "specbench.nightly",
        "first",
        "small",
        0,
    )
    assert red["text"].startswith("❌ *FAIL* · specbench nightly · small\n• head: tok/s −4.8 %")
    assert red["blocks"][0]["text"]["text"] == red["text"]
    shown = capsys.readouterr()
    assert SECRET not in stored_text(nights) + shown.out + shown.err


def test_a_webhook_that_fails_is_told_of_and_changes_no_exit_code(
    nights: Nights, endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.status = 500
    assert nights.spend("--webhook", endpoint.url) == 0
    assert "the webhook at 127.0.0.1 answered 500; the night's answer stands" in capsys.readouterr().err
    assert nights.spend("--webhook", f"ftp://{SECRET}") == 2
    shown = capsys.readouterr()
    assert "--webhook: that is no address" in shown.err
    assert SECRET not in shown.err
    assert nights.statuses == ["first"]


def test_a_webhook_is_told_of_no_secret(nights: Nights, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuvwx")
    nights.fail("--webhook", endpoint.url, trouble=SpecbenchError("denied with hf_abcdefghijklmnopqrstuvwx"))
    ((_, _, told),) = endpoint.bodies
    assert told["headlines"] == ["denied with (hidden)"]
    assert "hf_abc" not in stored_text(nights)


def test_rehearsed_nights_lie_apart(nights: Nights) -> None:
    assert nights.spend("--rehearse", simulated=True, rehearsal="a shrunk load") == 0
    assert not nights.place.exists()
    assert "SIMULATED" in (nights.place.with_name("small.simulated") / "index.html").read_text()
    assert main(["nightly", str(nights.suite), "--keep-gib", "no"]) == 2
