"""`specbench run --resume`: whole launches stay as they are, the others are done again, and nothing else is mixed in."""

import json
import os
import signal
from pathlib import Path

import msgspec
import pytest

from specbench.store import LOCK_FILE, StoredRun, read_run
from specbench.store.lock import ourselves
from tests.e2e.bed import SUITE, Bed, finish
from tests.e2e.test_run import wait_for_lines

VARIANTS = ("name: first", "name: second", "name: third")


def cut(bed: Bed, *variants: str, folder: str = "second.launch0") -> StoredRun:
    """A run that was killed while it drove the launch in `folder`."""
    text = SUITE.replace("request_count: 6", "request_count: 40").replace(
        "max_output_tokens: 8\n", "max_output_tokens: 32\n"
    )
    process = bed.start(str(bed.suite(*(variants or VARIANTS), text=text)))
    wait_for_lines(bed, folder, 5)
    process.kill()
    finish(process)
    return bed.stored()


def resume(bed: Bed, *words: str) -> tuple[int, str]:
    """The exit code and what was said."""
    (folder,) = (bed.folder / "results").iterdir()
    process = bed.start_plain("--resume", str(folder), *words)
    done = finish(process)
    return done.returncode, done.stderr


def files(run: StoredRun, name: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (Path(run.folder) / name).iterdir()}


def test_whole_launches_stay_and_the_others_are_done_again(bed: Bed) -> None:
    before = cut(bed)
    assert [one.record.complete for one in before.trials] == [True, False]
    whole, half = files(before, "first.launch0"), files(before, "second.launch0")
    code, said = resume(bed)
    assert code == 0, said
    assert "1 of 3 launches is whole and stays" in said
    after = bed.stored()
    assert after.run.complete
    assert [(one.record.complete, len(one.requests)) for one in after.trials] == [(True, 41)] * 3
    assert files(after, "first.launch0") == whole
    assert files(after, "aside/second.launch0.1") == half
    assert after.run.started_utc == before.run.started_utc
    assert len(after.run.resumed_utc) == 1
    assert after.run.trials == before.run.trials
    assert not (Path(after.folder) / LOCK_FILE).exists()
    again, said = resume(bed)
    assert again == 0
    assert "3 of 3 launches are whole and stay" in said
    assert files(bed.stored(), "second.launch0") == files(after, "second.launch0")


def test_an_interrupted_run_goes_on_as_it_is_told(bed: Bed) -> None:
    text = SUITE.replace("request_count: 6", "request_count: 100")
    process = bed.start(str(bed.suite(*VARIANTS, text=text)))
    wait_for_lines(bed, "first.launch0", 5)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.returncode == 130
    hint = f"specbench run --resume {bed.stored().folder}"
    assert hint in done.stderr
    code, said = resume(bed)
    assert code == 0, said
    assert [len(one.requests) for one in bed.stored().trials] == [101] * 3


def test_the_suite_may_be_given_and_must_be_the_same(bed: Bed) -> None:
    before = cut(bed)
    suite = bed.folder / "small.yaml"
    text = suite.read_text()
    suite.write_text(text.replace("{name: third}", "{name: third, args: [--step-s, 0.003]}"))
    code, said = resume(bed, str(suite))
    assert code == 2
    assert 'suite.variants.third.server.args: was [], is now ["--step-s","0.003"]' in said
    suite.write_text(text.replace("request_count: 40", "request_count: 41"))
    code, said = resume(bed, str(suite))
    assert code == 2
    assert "suite.workloads.chat.request_count: was 40, is now 41" in said
    assert [one.record for one in bed.stored().trials] == [one.record for one in before.trials]
    suite.write_text(text)
    assert resume(bed, str(suite))[0] == 0


def test_another_engine_version_or_command_is_refused(bed: Bed) -> None:
    before = cut(bed)
    engine = bed.folder / "path" / "specbench" / "engines" / "fake.py"
    text = engine.read_text()
    engine.write_text(text.replace('return "1.0"', 'return "1.1"'))
    code, said = resume(bed)
    assert code == 2
    assert "fake of variant 'first': was 1.0, is now 1.1" in said
    engine.write_text(text.replace("*args), env=env", '"--step-s", "1", *args), env=env'))
    code, said = resume(bed)
    assert code == 2
    assert "command of variant 'first'" in said
    assert bed.stored() == before, "nothing was moved"


def test_a_failure_is_a_result_unless_it_is_to_be_done_again(bed: Bed) -> None:
    before = cut(bed, "name: first, args: [--die-loading]", *VARIANTS[1:])
    code, _ = resume(bed)
    assert code == 1
    after = bed.stored()
    assert files(after, "first.launch0") == files(before, "first.launch0")
    assert [one.record.failure is None for one in after.trials] == [False, True, True]
    code, _ = resume(bed, "--redo-failed")
    assert code == 1
    assert (Path(after.folder) / "aside" / "first.launch0.1").is_dir()


def test_two_runs_in_one_folder(bed: Bed) -> None:
    cut(bed)
    (folder,) = (bed.folder / "results").iterdir()
    (folder / LOCK_FILE).write_bytes(msgspec.json.encode(ourselves()))
    code, said = resume(bed)
    assert code == 2
    assert f"another run writes there (process {os.getpid()} on" in said
    assert not (folder / "aside").exists()


def test_hidden_secrets_ask_for_the_suite(bed: Bed) -> None:
    variants = ("name: first", "name: second, env: {HF_TOKEN: hf_abcdefgh}", "name: third")
    cut(bed, *variants)
    code, said = resume(bed)
    assert code == 2
    assert "secrets are not stored; give the suite too: specbench run SUITE --resume" in said
    assert resume(bed, str(bed.folder / "small.yaml"))[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--variant", "first"), "leave out --variant"),
        (("--rehearse", "--full"), "leave out --rehearse, --full"),
    ],
)
def test_what_can_not_be_given_again(bed: Bed, words: tuple[str, ...], sentence: str) -> None:
    (bed.folder / "results" / "x").mkdir(parents=True)
    code, said = resume(bed, *words)
    assert code == 2
    assert sentence in said


def test_a_folder_that_is_no_run(bed: Bed) -> None:
    (bed.folder / "results" / "x").mkdir(parents=True)
    code, said = resume(bed)
    assert code == 2
    assert "no result of specbench: it has no run.json" in said
    done = finish(bed.start_plain("--redo-failed", str(bed.suite("name: a"))))
    assert "--redo-failed belongs to --resume DIR" in done.stderr
    assert "which suite?" in finish(bed.start_plain()).stderr


def test_a_launch_whose_lines_were_lost_is_not_whole(bed: Bed) -> None:
    before = cut(bed)
    path = Path(before.folder) / "first.launch0" / "requests.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    assert bed.stored().missing_count == 3
    code, said = resume(bed)
    assert code == 0, said
    assert [len(one.requests) for one in bed.stored().trials] == [41] * 3
    assert json.loads((Path(before.folder) / "aside" / "first.launch0.1" / "manifest.json").read_text())["complete"]


def test_a_suite_from_a_pipe_is_stored(bed: Bed) -> None:
    text = bed.suite("name: plain").read_text()
    process = bed.start("/dev/stdin", stdin=text)
    done = finish(process)
    assert done.returncode == 0, done.stderr
    assert (Path(bed.stored().folder) / "suite.yaml").read_text() == text
    assert read_run(bed.stored().folder).run.complete
