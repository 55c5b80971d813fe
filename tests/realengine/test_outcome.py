"""What the outcome checks hold against one another, on figures that can be computed in one's head."""

from pathlib import Path

import pytest

from specbench.records import Observation
from specbench.store import StoredTrial
from tests.realengine import llama_server
from tests.realengine.outcome_vllm import log_against_counters
from tests.unit.analysis.runs import trial


def reading(at_s: float, accepted: int, proposed: int) -> Observation:
    counters = {
        "vllm:spec_decode_num_drafts_total": proposed / 3,
        "vllm:spec_decode_num_accepted_tokens_total": accepted,
        "vllm:spec_decode_num_draft_tokens_total": proposed,
    }
    return Observation(at_s=at_s, source="metrics", name="end", value={"counters": counters})


def line(at_s: float, accepted: int, drafted: int) -> Observation:
    return Observation(at_s=at_s, source="log", name="decode", value={"extra": {"accepted": accepted, "drafted": drafted}})


def launched(*observations: Observation) -> StoredTrial:
    return trial("eagle3", (), observations)


def test_a_reading_lies_between_the_lines_around_it() -> None:
    lines = (line(10.0, 20, 60), line(20.0, 10, 30))
    assert not list(
        log_against_counters(launched(reading(5.0, 9, 30), *lines, reading(15.0, 25, 75), reading(25.0, 30, 90)))
    )
    for accepted, proposed in ((19, 60), (31, 75), (25, 93)):
        (fault,) = log_against_counters(launched(*lines, reading(15.0, accepted, proposed)))
        assert fault.startswith("eagle3 at 15.0 s")


def test_lines_that_tell_more_than_was_counted_are_told() -> None:
    assert len(list(log_against_counters(launched(line(10.0, 20, 60), reading(15.0, 19, 60))))) == 1


def test_the_server_that_is_named_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "llama-server"
    monkeypatch.setenv("SPECBENCH_LLAMA_SERVER", str(program))
    with pytest.raises(SystemExit, match="not there or can't be run"):
        llama_server.found()
    program.touch(mode=0o755)
    assert llama_server.ensure() == program


def test_what_was_built_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECBENCH_LLAMA_SERVER", raising=False)
    monkeypatch.setenv("SPECBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(llama_server.LackingError, match="no C\\+\\+ compiler"):
        llama_server.ensure()
    llama_server.kept_folder().mkdir()
    assert llama_server.ensure() == llama_server.kept_folder() / "llama-server"
